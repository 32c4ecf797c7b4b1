// SPDX-License-Identifier: Apache-2.0
// Ops that make constants.
#include <cstring>

#include "formats/onnx/read/importer.h"
#include "formats/onnx/read/registry.h"
#include "memory/string_constant.h"

namespace anymps::onnx {

namespace {

constexpr size_t kSmall = 16 << 10;

ONNX_READ(Constant) {
  using anymps::Constant;
  if (const Attribute* sparse = c.node.find("sparse_value")) {
    c.ignore({"sparse_value"});
    c.check(sparse->sparse_tensors.size() == 1, "attribute 'sparse_value' is no sparse tensor");
    return {c.graph.constant(to_constant(sparse->sparse_tensors[0]))};
  }
  if (const Tensor* value = c.tensor("value")) return {c.graph.constant(to_constant(*value))};
  if (c.has("value_float")) return {c.graph.scalar(DType::kF32, c.f("value_float"))};
  if (c.has("value_int")) return {c.graph.constant(Constant::of<int64_t>({}, {c.i("value_int")}))};
  if (auto values = c.ints("value_ints")) return {c.graph.ints(*values)};
  if (auto values = c.floats("value_floats"))
    return {c.graph.constant(Constant::of<float>({static_cast<int64_t>(values->size())}, *values))};
  if (c.has("value_string")) return {c.graph.constant(string_constant({}, {c.s("value_string")}))};
  if (auto values = c.strings("value_strings")) {
    const auto count = static_cast<int64_t>(values->size());
    return {c.graph.constant(string_constant({count}, std::move(*values)))};
  }
  c.unsupported("a constant of this kind (sparse tensors) is not supported");
}

// A large tensor is a recipe: the weights of a test model are made this way and are hundreds of
// megabytes of one number.
ConstantPtr filled(DType dtype, const Shape& shape, std::vector<std::byte> element) {
  using anymps::Constant;
  auto recipe = [element, count = static_cast<size_t>(element_count(shape))](std::byte* out) {
    for (size_t i = 0; i < count; ++i, out += element.size())
      std::memcpy(out, element.data(), element.size());
  };
  const size_t bytes = byte_count(dtype, shape);
  if (bytes > kSmall) return Constant::lazy(dtype, shape, recipe);
  std::vector<std::byte> content(bytes);
  recipe(content.data());
  return Constant::copy(dtype, shape, content);
}

ONNX_READ(ConstantOfShape) {
  const Tensor* value = c.tensor("value");
  if (value)
    c.check(value->element_count == 1, "attribute 'value' has {} elements, must have 1",
            value->element_count);
  const DType dtype = value ? to_dtype(value->type) : DType::kF32;
  std::vector<std::byte> element(size_of(dtype));
  if (value && dtype != DType::kString)
    std::memcpy(element.data(), to_constant(*value)->data().get(), element.size());
  if (auto extents = known_ints(c.in(0)); extents && dtype != DType::kString) {
    for (int64_t extent : *extents)
      c.check(extent >= 0, "the shape has the negative extent {}", extent);
    return {c.graph.constant(filled(dtype, Shape(extents->begin(), extents->end()), element))};
  }
  Value* scalar = c.graph.constant(dtype == DType::kString
                                       ? string_constant({}, {std::string(value->strings[0])})
                                       : anymps::Constant::copy(dtype, {}, element));
  return {c.add("fill", {c.in(0), scalar}, {{"dtype", dtype}})};
}

ONNX_READ(Range) { return {c.add("range", {c.in(0), c.in(1), c.in(2)})}; }

ONNX_READ(OneHot) {
  return {c.add("one_hot", {c.in(0), c.in(1), c.in(2)}, {{"axis", c.i("axis", -1)}})};
}

}  // namespace

}  // namespace anymps::onnx
