// SPDX-License-Identifier: Apache-2.0
#include "ops/elementwise/elementwise_infer.h"

#include <array>
#include <map>
#include <span>

namespace anymps {

namespace {

// One element of the result, or nothing when it cannot be told; known operands that would wrap
// tell nothing either.
using Element = std::optional<Dim>;
using ElementFn = Element (*)(const Attrs&, std::span<const Dim>);

bool both_known(std::span<const Dim> args) { return args[0].known() && args[1].known(); }

// A symbol is made of extents, which are never negative; only a minus can make it so.
bool never_negative(const Dim& dim) {
  if (dim.known()) return dim.value() >= 0;
  const std::string text = dim.str();
  return text.find_first_of("-?") == std::string::npos && !text.starts_with("expr_");
}

Element add(const Attrs&, std::span<const Dim> x) {
  int64_t result = 0;
  if (both_known(x) && __builtin_add_overflow(x[0].value(), x[1].value(), &result)) return {};
  return x[0] + x[1];
}

Element sub(const Attrs&, std::span<const Dim> x) {
  int64_t result = 0;
  if (both_known(x) && __builtin_sub_overflow(x[0].value(), x[1].value(), &result)) return {};
  return x[0] - x[1];
}

Element mul(const Attrs&, std::span<const Dim> x) {
  int64_t result = 0;
  if (both_known(x) && __builtin_mul_overflow(x[0].value(), x[1].value(), &result)) return {};
  return x[0] * x[1];
}

// Only where rounding down and toward zero are the same, unless the numbers are known.
Element div(const Attrs& attrs, std::span<const Dim> x) {
  if (x[1].is(0)) return {};
  if (x[1].is(-1)) return sub(attrs, std::array<Dim, 2>{Dim(0), x[0]});
  if (attrs.s("rounding") == "floor") return floor_div(x[0], x[1]);
  if (both_known(x)) return x[0].value() / x[1].value();
  if (never_negative(x[0]) && never_negative(x[1])) return floor_div(x[0], x[1]);
  return {};
}

Element floor_mod(const Attrs&, std::span<const Dim> x) {
  if (x[1].is(0)) return {};
  if (x[1].is(1) || x[1].is(-1)) return Dim(0);
  if (!both_known(x)) return x[0] - floor_div(x[0], x[1]) * x[1];
  const int64_t b = x[1].value(), remainder = x[0].value() % b;
  return remainder != 0 && (remainder < 0) != (b < 0) ? remainder + b : remainder;
}

Element mod(const Attrs& attrs, std::span<const Dim> x) {
  if (x[1].is(0)) return {};
  if (both_known(x)) return x[1].is(-1) ? 0 : x[0].value() % x[1].value();
  if (never_negative(x[0]) && never_negative(x[1])) return floor_mod(attrs, x);
  return {};
}

Element min_of(const Attrs&, std::span<const Dim> x) { return min(x[0], x[1]); }
Element max_of(const Attrs&, std::span<const Dim> x) { return max(x[0], x[1]); }
Element same(const Attrs&, std::span<const Dim> x) { return x[0]; }
Element neg(const Attrs& attrs, std::span<const Dim> x) {
  return sub(attrs, std::array<Dim, 2>{Dim(0), x[0]});
}

Element cast(const Attrs& attrs, std::span<const Dim> x) {
  if (attrs.dtype("dtype") != DType::kBool) return x[0];
  if (!x[0].known()) return {};
  return Dim(x[0].value() != 0);
}

Element where(const Attrs&, std::span<const Dim> x) {
  if (x[0].known()) return x[0].is(0) ? x[2] : x[1];
  if (x[1] == x[2]) return x[1];
  return {};
}

// -1, 0, 1: a is less than, equal to, greater than b.
std::optional<int> compare(const Dim& a, const Dim& b) {
  if (a == b) return 0;
  if (a.known() && b.known()) return a.value() < b.value() ? -1 : 1;
  if (b.known() && b.value() < 0 && never_negative(a)) return 1;
  if (a.known() && a.value() < 0 && never_negative(b)) return -1;
  return {};
}

template <int64_t (*test)(int)>
Element comparison(const Attrs&, std::span<const Dim> x) {
  const std::optional<int> order = compare(x[0], x[1]);
  return order ? Element(Dim(test(*order))) : Element();
}
int64_t is_equal(int order) { return order == 0; }
int64_t is_not_equal(int order) { return order != 0; }
int64_t is_less(int order) { return order < 0; }
int64_t is_less_equal(int order) { return order <= 0; }
int64_t is_greater(int order) { return order > 0; }
int64_t is_greater_equal(int order) { return order >= 0; }

template <int64_t (*test)(bool, bool)>
Element logical(const Attrs&, std::span<const Dim> x) {
  if (!both_known(x)) return {};
  return Dim(test(!x[0].is(0), !x[1].is(0)));
}
int64_t is_and(bool a, bool b) { return a && b; }
int64_t is_or(bool a, bool b) { return a || b; }
int64_t is_xor(bool a, bool b) { return a != b; }
Element logical_not(const Attrs&, std::span<const Dim> x) {
  if (!x[0].known()) return {};
  return Dim(x[0].is(0));
}

const std::map<std::string_view, ElementFn>& functions() {
  static const std::map<std::string_view, ElementFn> all = {
      {"identity", same},
      {"add", add},
      {"sub", sub},
      {"mul", mul},
      {"div", div},
      {"mod", mod},
      {"floor_mod", floor_mod},
      {"min", min_of},
      {"max", max_of},
      {"neg", neg},
      {"cast", cast},
      {"where", where},
      {"equal", comparison<is_equal>},
      {"not_equal", comparison<is_not_equal>},
      {"less", comparison<is_less>},
      {"less_equal", comparison<is_less_equal>},
      {"greater", comparison<is_greater>},
      {"greater_equal", comparison<is_greater_equal>},
      {"logical_and", logical<is_and>},
      {"logical_or", logical<is_or>},
      {"logical_xor", logical<is_xor>},
      {"logical_not", logical_not},
  };
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
    if (desc.count() != static_cast<int64_t>(ctx.content(i)->size())) return {};
    strides.push_back(broadcast_strides(desc, out));
  }
  Dims content;
  for (int64_t flat = 0; flat < count; ++flat) {
    Dims args(ctx.input_count());
    for (size_t i = 0; i < args.size(); ++i) {
      int64_t rest = flat, offset = 0;
      for (size_t axis = out.size(); axis-- > 0; rest /= out[axis])
        offset += rest % out[axis] * strides[i][axis];
      args[i] = (*ctx.content(i))[static_cast<size_t>(offset)];
    }
    const Element element = found->second(ctx.attrs, args);
    if (!element || !fits(*element, dtype)) return {};
    content.push_back(*element);
  }
  return content;
}

}  // namespace

void infer_elementwise(InferContext& ctx) {
  std::optional<Dims> shape;
  for (size_t i = 0; i < ctx.input_count(); ++i)
    if (ctx.has(i))
      shape = shape ? broadcast(*shape, ctx.shape(i), ctx.op.name.c_str()) : ctx.shape(i);
  ctx.set(0, *shape);
  if (auto content = elements(ctx, *shape)) ctx.set_content(0, std::move(*content));
}

}  // namespace anymps
