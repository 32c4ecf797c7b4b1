// SPDX-License-Identifier: Apache-2.0
// Ops that make constants and random numbers. A node without a seed draws other numbers at each
// run.
#include <bit>
#include <cstring>

#include "formats/onnx/read/importer.h"
#include "formats/onnx/read/registry.h"
#include "memory/string_constant.h"

namespace anymps::onnx {

namespace {

using Ints = std::vector<int64_t>;

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
    return {c.graph.constant(Constant::of<float>({std::ssize(*values)}, *values))};
  if (c.has("value_string")) return {c.graph.constant(string_constant({}, {c.s("value_string")}))};
  if (auto values = c.strings("value_strings")) {
    const auto count = std::ssize(*values);
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
  if (auto extents = known_ints(*c.in(0)); extents && dtype != DType::kString) {
    for (int64_t extent : *extents)
      c.check(extent >= 0, "the shape has the negative extent {}", extent);
    return {c.graph.constant(filled(dtype, Shape(extents->begin(), extents->end()), element))};
  }
  Value* scalar = c.graph.constant(dtype == DType::kString
                                       ? string_constant({}, {std::string(value->strings[0])})
                                       : anymps::Constant::copy(dtype, {}, element));
  return {c.add("fill", {c.in(0), scalar}, {{"dtype", dtype}})};
}

// The state that a node's numbers follow from. Seeds are floats: their bits are the key.
Value* state_of(Call& c) {
  if (!c.has("seed")) return c.add("random_state", {});
  const auto seed = static_cast<float>(c.f("seed"));
  return c.add("philox_state", {}, {{"key", int64_t{std::bit_cast<uint32_t>(seed)}}});
}

NamedAttrs normal(Call& c) {
  return {{"distribution", "normal"}, {"mean", c.f("mean", 0.0)}, {"deviation", c.f("scale", 1.0)}};
}
NamedAttrs uniform(Call& c) {
  return {{"distribution", "uniform"}, {"low", c.f("low", 0.0)}, {"high", c.f("high", 1.0)}};
}

Values with_shape(Call& c, NamedAttrs attrs) {
  auto shape = c.ints("shape");
  c.check(shape.has_value(), "attribute 'shape' is missing");
  attrs.emplace_back("shape", *shape);
  attrs.emplace_back("dtype", c.dtype("dtype", DType::kF32));
  return {c.add("random", {state_of(c)}, attrs)};
}

Values like(Call& c, NamedAttrs attrs) {
  Value* x = c.in(0);
  attrs.emplace_back("dtype", c.dtype("dtype", x->dtype()));
  return {c.add("random", {state_of(c), c.add("shape", {x})}, attrs)};
}

ONNX_READ(RandomNormal) { return with_shape(c, normal(c)); }
ONNX_READ(RandomUniform) { return with_shape(c, uniform(c)); }
ONNX_READ(RandomNormalLike) { return like(c, normal(c)); }
ONNX_READ(RandomUniformLike) { return like(c, uniform(c)); }

ONNX_READ(Bernoulli) {
  Value* x = c.in(0);
  return {c.add("bernoulli", {x, state_of(c)}, {{"dtype", c.dtype("dtype", x->dtype())}})};
}

ONNX_READ(Multinomial) {
  return {c.add("multinomial", {c.in(0), state_of(c)},
                {{"samples", c.i("sample_size", 1)}, {"dtype", c.dtype("dtype", DType::kI32)}})};
}

// Nothing is dropped at inference. In training mode, which may be chosen at run time, a node with a
// seed draws the numbers of ONNX's reference.
ONNX_READ(Dropout) {
  Value* x = c.in(0);
  const DType mask_type = c.opset < 10 ? x->dtype() : DType::kBool;
  const auto whole = [&]() -> Values {
    if (!c.wants(1)) return {x};
    return {x, c.add("fill", {c.add("shape", {x}), c.graph.scalar(mask_type, 1)},
                     {{"dtype", mask_type}})};
  };
  c.ignore({"is_test"});
  if (c.opset < 12) {
    c.ignore({"ratio", "seed"});
    return whole();
  }
  Value *ratio = c.opt(1), *training = c.opt(2);
  c.ignore({"seed"});
  if (!training) return whole();
  const auto mode = scalar_of(training);
  if (mode && *mode == 0) return whole();
  if (!ratio) ratio = c.graph.scalar(DType::kF64, 0.5);
  Value* shape = c.add("shape", {x});
  Value* uniform =
      c.has("seed") ? c.add("random_mersenne", {shape}, {{"seed", c.i("seed")}})
                    : c.add("random", {c.add("random_state", {}), shape}, {{"dtype", DType::kF64}});
  Value* mask = c.add("greater_equal", {uniform, c.cast(ratio, DType::kF64)});
  Value* kept = c.add("sub", {c.scalar_like(x, 1), c.cast(ratio, x->dtype())});
  Value* y = c.add("where", {mask, c.add("div", {x, kept}), c.scalar_like(x, 0)});
  if (!mode) {
    y = c.add("where", {training, y, x});
    mask = c.add("logical_or", {mask, c.add("logical_not", {training})});
  }
  return {y, mask};
}

}  // namespace

}  // namespace anymps::onnx
