// SPDX-License-Identifier: Apache-2.0
// Elementwise ops: arithmetic, comparison, logic, bits, activations, casts. Those that the op table
// has alike are not here: their records have their names.
#include <numeric>

#include "base/narrow.h"
#include "formats/onnx/read/registry.h"
#include "formats/onnx/read/same_op.h"

namespace anymps::onnx {

namespace {

Value* fold(Call& c, std::string_view op) {
  Values values = c.all();
  Value* result = values[0];
  for (size_t i = 1; i < values.size(); ++i) result = c.add(op, {result, values[i]});
  return result;
}

Value* with_scalar(Call& c, std::string_view op, Value* x, double number) {
  return c.add(op, {x, c.scalar_like(x, number)});
}

ONNX_READ(Max) { return {fold(c, "max")}; }
ONNX_READ(Min) { return {fold(c, "min")}; }
ONNX_READ(Sum) { return {fold(c, "add")}; }
ONNX_READ(Mean) {
  const double count = static_cast<double>(c.input_count());
  return {with_scalar(c, "mul", fold(c, "add"), 1 / count)};
}

// The result has the type of the base, whatever the type of the exponent.
ONNX_READ(Pow) {
  Value *x = c.in(0), *y = aligned(c, x, c.in(1));
  const DType type = x->dtype();
  const DType computed = !is_float(type) && is_float(y->dtype()) ? y->dtype() : type;
  return {c.cast(c.add("pow", {c.cast(x, computed), c.cast(y, computed)}), type)};
}

ONNX_READ(Mod) {
  const bool fmod = c.flag("fmod", false);
  return {c.add(fmod ? "mod" : "floor_mod", {c.in(0), c.in(1)})};
}

ONNX_READ(IsInf) {
  return {c.add("is_inf", {c.in(0)},
                {{"positive", c.flag("detect_positive", true)},
                 {"negative", c.flag("detect_negative", true)}})};
}

// Bounds that are known become attributes, which passes can read. (A double holds every float, but
// not every i64.)
ONNX_READ(Clip) {
  Value* x = c.in(0);
  Values inputs = {x};
  NamedAttrs attrs;
  static const char* kBounds[] = {"min", "max"};
  for (size_t i = 0; i < 2; ++i) {
    Value* bound = c.opset < 11 ? nullptr : c.opt(i + 1);
    if (c.opset < 11 && c.has(kBounds[i])) attrs.emplace_back(kBounds[i], c.f(kBounds[i]));
    const auto number = is_float(x->dtype()) ? scalar_of(bound) : std::nullopt;
    if (number) attrs.emplace_back(kBounds[i], *number);
    inputs.push_back(number ? nullptr : bound);
  }
  return {c.add("clamp", inputs, attrs)};
}

// Before opset 7 a vector of slopes was one for each channel.
ONNX_READ(PRelu) {
  Value *x = c.in(0), *slope = c.in(1);
  if (c.opset < 7 && c.rank(x) > 2 && c.rank(slope) == 1) {
    std::vector<int64_t> axes(c.rank(x) - 2);
    std::iota(axes.begin(), axes.end(), 1);
    slope = c.add("unsqueeze", {slope}, {{"axes", axes}});
  }
  return {c.add("prelu", {x, slope})};
}

ONNX_READ(Identity) { return {c.in(0)}; }

// x where |x| > lambd, moved towards 0 by bias
ONNX_READ(Shrink) {
  Value* x = c.in(0);
  const double bias = c.f("bias", 0.0), lambd = c.f("lambd", 0.5);
  Value* low = c.add("where", {with_scalar(c, "less", x, -lambd), with_scalar(c, "add", x, bias),
                               c.scalar_like(x, 0)});
  return {
      c.add("where", {with_scalar(c, "greater", x, lambd), with_scalar(c, "sub", x, bias), low})};
}

Value* swish(Call& c, Value* x) {
  const double alpha = c.f("alpha", 1.0);
  if (alpha == 1) return c.add("silu", {x});
  return c.add("mul", {x, c.add("sigmoid", {with_scalar(c, "mul", x, alpha)})});
}

ONNX_READ(Swish) { return {swish(c, c.in(0))}; }
ONNX_READ(SwiGLU) { return {c.add("mul", {swish(c, c.in(0)), c.in(1)})}; }

ONNX_READ(BitShift) {
  const std::string direction = c.s("direction");
  c.check(direction == "LEFT" || direction == "RIGHT", "direction '{}' is not LEFT or RIGHT",
          direction);
  return {c.add(direction == "LEFT" ? "left_shift" : "right_shift", {c.in(0), c.in(1)})};
}

// Before opset 13 the axes from `axis` on count as one.
Value* softmax_like(Call& c, std::string_view op) {
  Value* x = c.in(0);
  if (c.opset >= 13) return c.add(op, {x}, {{"axis", c.i("axis", -1)}});
  const int64_t rank = c.rank(x), axis = c.axis("axis", 1, rank);
  if (axis == rank - 1) return c.add(op, {x}, {{"axis", -1}});
  Value* flat = c.add("flatten", {x}, {{"axis", axis}});
  return c.add("reshape", {c.add(op, {flat}, {{"axis", -1}}), c.add("shape", {x})});
}

ONNX_READ(Softmax) { return {softmax_like(c, "softmax")}; }

ONNX_READ(LogSoftmax) { return {softmax_like(c, "log_softmax")}; }

// 1 at the first of the largest elements, 0 elsewhere.
ONNX_READ(Hardmax) {
  Value* x = c.in(0);
  Value* flat = x;
  int64_t axis = c.axis("axis", c.opset >= 13 ? -1 : 1, c.rank(x));
  if (c.opset < 13) {
    flat = c.add("flatten", {x}, {{"axis", axis}});
    axis = 1;
  }
  Value* best = c.add("arg_max", {flat}, {{"axis", axis}, {"keep_dims", false}});
  Value* depth = c.add("shape", {flat}, {{"start", axis}, {"end", axis + 1}});
  depth = c.add("squeeze", {depth}, {{"axes", std::vector<int64_t>{0}}});
  Value* values = c.cast(c.graph.constant(anymps::Constant::of<float>({2}, {0, 1})), x->dtype());
  Value* hot = c.add("one_hot", {best, depth, values}, {{"axis", axis}});
  return {c.opset < 13 ? c.add("reshape", {hot, c.add("shape", {x})}) : hot};
}

Values cast_to(Call& c, DType to) {
  const bool saturate = c.opset < 19 || c.flag("saturate", true);
  const std::string mode = c.opset < 24 ? "up" : c.s("round_mode", "up");
  Value* x = c.in(0);
  if (x->dtype() == to) return {x};
  return {c.add("cast", {x}, {{"dtype", to}, {"saturate", saturate}, {"round_mode", mode}})};
}

// Before opset 6 the type is its name.
DType target(Call& c) {
  if (c.opset >= 6) return c.dtype("to");
  const std::string wanted = c.s("to");
  if (const auto type = data_type_named(wanted)) return to_dtype(*type);
  c.unsupported("attribute 'to' is \"{}\", which is not an element type", wanted);
}

ONNX_READ(Cast) { return cast_to(c, target(c)); }

ONNX_READ(CastLike) { return cast_to(c, c.in(1)->dtype()); }

// Types of less than 8 bits, which take a byte all the same.
bool is_packed(DType dtype) { return contains(kNarrowInt | bit(DType::kF4E2M1), dtype); }

ONNX_READ(BitCast) {
  const DType from = c.in(0)->dtype(), to = c.dtype("to");
  c.check(from != DType::kString && to != DType::kString && size_of(from) == size_of(to) &&
              is_packed(from) == is_packed(to),
          "{} and {} have not the same number of bits", anymps::name(from), name(to_data_type(to)));
  return {c.add("reinterpret", {c.in(0)}, {{"dtype", to}})};
}

}  // namespace

}  // namespace anymps::onnx
