// SPDX-License-Identifier: Apache-2.0
#include "ops/elementwise/elementwise_infer.h"

#include <map>

namespace anymps {

namespace {

using Functions = std::map<std::string_view, ElementFn>;

Functions& functions() {
  static Functions all;  // filled before main
  return all;
}

bool holds_content(DType dtype) { return contains(kIndex | kBoolean, dtype); }

DType result_dtype(const InferContext& ctx) {
  const std::string& type = ctx.op.outputs[0].type;
  if (type == "bool") return DType::kBool;
  if (type.empty()) return ctx.attrs.dtype("dtype");
  return ctx.dtype(ctx.op.inputs[0].type == type ? 0 : 1);
}

bool fits(const Dim& value, DType dtype) {
  if (dtype == DType::kBool) return value.known();
  if (!value.known() || dtype != DType::kI32) return true;
  return value.value() >= INT32_MIN && value.value() <= INT32_MAX;
}

// The elements of the output in row-major order, if all can be told.
std::optional<Dims> elements(const InferContext& ctx, const Dims& shape) {
  const auto found = functions().find(ctx.op.name);
  if (found == functions().end() || !all_known(shape)) return {};
  const DType dtype = result_dtype(ctx);
  if (!holds_content(dtype)) return {};
  const Shape out = to_shape(shape);
  const int64_t count = element_count(out);
  if (count > ValueType::kMaxContent) return {};
  std::vector<Strides> strides;
  for (size_t i = 0; i < ctx.input_count(); ++i) {
    if (!ctx.content(i) || !holds_content(ctx.dtype(i)) || !ctx.type(i).static_shape()) return {};
    const TensorDesc desc(ctx.dtype(i), to_shape(ctx.shape(i)));
    if (desc.count() != std::ssize(*ctx.content(i))) return {};
    strides.push_back(broadcast_strides(desc, out));
  }
  Dims content;
  for (int64_t flat = 0; flat < count; ++flat) {
    Dims args(ctx.input_count());
    for (size_t i = 0; i < args.size(); ++i) {
      int64_t rest = flat, offset = 0;
      for (size_t axis = out.size(); axis-- > 0; rest /= out[axis])
        offset += rest % out[axis] * strides[i][axis];
      args[i] = (*ctx.content(i))[offset];
    }
    const Element element = found->second(ctx.attrs, args);
    if (!element || !fits(*element, dtype)) return {};
    content.push_back(dtype == DType::kBool ? Dim(element->value() != 0) : *element);
  }
  return content;
}

}  // namespace

KnownElements::KnownElements(const char* op, ElementFn fn) { functions()[op] = fn; }

bool never_negative(const Dim& dim) {
  if (dim.known()) return dim.value() >= 0;
  const std::string text = dim.str();
  return text.find_first_of("-?") == std::string::npos && !text.starts_with("expr_");
}

void infer_elementwise(InferContext& ctx) {
  std::optional<Dims> shape;
  for (size_t i = 0; i < ctx.input_count(); ++i)
    if (ctx.has(i))
      shape = shape ? broadcast(*shape, ctx.shape(i), ctx.op.name.c_str()) : ctx.shape(i);
  ctx.set(0, *shape);
  if (auto content = elements(ctx, *shape)) ctx.set_content(0, std::move(*content));
}

}  // namespace anymps
