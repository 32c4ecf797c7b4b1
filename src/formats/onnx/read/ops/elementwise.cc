// SPDX-License-Identifier: Apache-2.0
// Elementwise ops: arithmetic, comparison, logic, activations, casts.
#include <numeric>

#include "formats/onnx/read/import.h"
#include "formats/onnx/read/registry.h"

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

// Before opset 7 the second input was laid along the axes of the first from `axis` on: give it the
// axes of extent 1 that NumPy's rule needs at its end.
Value* aligned(Call& c, Value* a, Value* b) {
  if (c.opset >= 7 || !c.flag("broadcast", false)) return b;
  if (!c.has("axis")) return b;
  const int64_t after = c.rank(a) - c.axis("axis", std::nullopt, c.rank(a)) - c.rank(b);
  c.check(after >= 0, "axis {} leaves no room for the second input", c.i("axis"));
  if (after == 0) return b;
  std::vector<int64_t> axes(static_cast<size_t>(after));
  std::iota(axes.begin(), axes.end(), c.rank(b));
  return c.add("unsqueeze", {b}, {{"axes", axes}});
}

Values binary(Call& c, std::string_view op) {
  Value *a = c.in(0), *b = c.in(1);
  return {c.add(op, {a, aligned(c, a, b)})};
}

ONNX_READ(Add) { return binary(c, "add"); }
ONNX_READ(And) { return binary(c, "logical_and"); }
ONNX_READ(Div) { return binary(c, "div"); }
ONNX_READ(Equal) { return binary(c, "equal"); }
ONNX_READ(Greater) { return binary(c, "greater"); }
ONNX_READ(Less) { return binary(c, "less"); }
ONNX_READ(Mul) { return binary(c, "mul"); }
ONNX_READ(Or) { return binary(c, "logical_or"); }
ONNX_READ(Sub) { return binary(c, "sub"); }
ONNX_READ(Xor) { return binary(c, "logical_xor"); }

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
    std::vector<int64_t> axes(static_cast<size_t>(c.rank(x) - 2));
    std::iota(axes.begin(), axes.end(), 1);
    slope = c.add("unsqueeze", {slope}, {{"axes", axes}});
  }
  return {c.add("prelu", {x, slope})};
}

ONNX_READ(Identity) { return {c.in(0)}; }

ONNX_READ(LeakyRelu) { return {c.add("leaky_relu", {c.in(0)}, {{"alpha", c.f("alpha", 0.01)}})}; }

ONNX_READ(Elu) { return {c.add("elu", {c.in(0)}, {{"alpha", c.f("alpha", 1.0)}})}; }

ONNX_READ(Selu) {
  const double alpha = c.f("alpha", 1.67326319217681884765625);
  const double gamma = c.f("gamma", 1.05070102214813232421875);
  return {c.add("selu", {c.in(0)}, {{"alpha", alpha}, {"gamma", gamma}})};
}

ONNX_READ(Celu) { return {c.add("celu", {c.in(0)}, {{"alpha", c.f("alpha", 1.0)}})}; }

ONNX_READ(HardSigmoid) {
  return {
      c.add("hard_sigmoid", {c.in(0)}, {{"alpha", c.f("alpha", 0.2)}, {"beta", c.f("beta", 0.5)}})};
}

ONNX_READ(ThresholdedRelu) {
  return {c.add("thresholded_relu", {c.in(0)}, {{"alpha", c.f("alpha", 1.0)}})};
}

// x where |x| > lambd, moved towards 0 by bias
ONNX_READ(Shrink) {
  Value* x = c.in(0);
  const double bias = c.f("bias", 0.0), lambd = c.f("lambd", 0.5);
  Value* low = c.add("where", {with_scalar(c, "less", x, -lambd), with_scalar(c, "add", x, bias),
                               c.scalar_like(x, 0)});
  return {
      c.add("where", {with_scalar(c, "greater", x, lambd), with_scalar(c, "sub", x, bias), low})};
}

ONNX_READ(Gelu) {
  const std::string approximate = c.s("approximate", "none");
  c.check(approximate == "none" || approximate == "tanh", "approximate '{}' is not none or tanh",
          approximate);
  return {c.add("gelu", {c.in(0)}, {{"approximate", approximate}})};
}

Value* swish(Call& c, Value* x) {
  const double alpha = c.f("alpha", 1.0);
  if (alpha == 1) return c.add("silu", {x});
  return c.add("mul", {x, c.add("sigmoid", {with_scalar(c, "mul", x, alpha)})});
}

ONNX_READ(Swish) { return {swish(c, c.in(0))}; }
ONNX_READ(SwiGLU) { return {c.add("mul", {swish(c, c.in(0)), c.in(1)})}; }

ONNX_SAME(kOnnx, Abs, "abs");
ONNX_SAME(kOnnx, Acos, "acos");
ONNX_SAME(kOnnx, Acosh, "acosh");
ONNX_SAME(kOnnx, Asin, "asin");
ONNX_SAME(kOnnx, Asinh, "asinh");
ONNX_SAME(kOnnx, Atan, "atan");
ONNX_SAME(kOnnx, Atanh, "atanh");
ONNX_SAME(kOnnx, Ceil, "ceil");
ONNX_SAME(kOnnx, Cos, "cos");
ONNX_SAME(kOnnx, Cosh, "cosh");
ONNX_SAME(kOnnx, Erf, "erf");
ONNX_SAME(kOnnx, Exp, "exp");
ONNX_SAME(kOnnx, Floor, "floor");
ONNX_SAME(kOnnx, GreaterOrEqual, "greater_equal");
ONNX_SAME(kOnnx, HardSwish, "hard_swish");
ONNX_SAME(kOnnx, IsNaN, "is_nan");
ONNX_SAME(kOnnx, LessOrEqual, "less_equal");
ONNX_SAME(kOnnx, Log, "log");
ONNX_SAME(kOnnx, Mish, "mish");
ONNX_SAME(kOnnx, Neg, "neg");
ONNX_SAME(kOnnx, Not, "logical_not");
ONNX_SAME(kOnnx, Reciprocal, "reciprocal");
ONNX_SAME(kOnnx, Relu, "relu");
ONNX_SAME(kOnnx, Round, "rint");
ONNX_SAME(kOnnx, Sigmoid, "sigmoid");
ONNX_SAME(kOnnx, Sign, "sign");
ONNX_SAME(kOnnx, Sin, "sin");
ONNX_SAME(kOnnx, Sinh, "sinh");
ONNX_SAME(kOnnx, Softplus, "softplus");
ONNX_SAME(kOnnx, Softsign, "softsign");
ONNX_SAME(kOnnx, Sqrt, "sqrt");
ONNX_SAME(kOnnx, Tan, "tan");
ONNX_SAME(kOnnx, Tanh, "tanh");
ONNX_SAME(kOnnx, Where, "where");

}  // namespace

}  // namespace anymps::onnx
