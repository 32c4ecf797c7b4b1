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

Values Add(Call& c) { return binary(c, "add"); }
Values And(Call& c) { return binary(c, "logical_and"); }
Values Div(Call& c) { return binary(c, "div"); }
Values Equal(Call& c) { return binary(c, "equal"); }
Values Greater(Call& c) { return binary(c, "greater"); }
Values Less(Call& c) { return binary(c, "less"); }
Values Mul(Call& c) { return binary(c, "mul"); }
Values Or(Call& c) { return binary(c, "logical_or"); }
Values Sub(Call& c) { return binary(c, "sub"); }
Values Xor(Call& c) { return binary(c, "logical_xor"); }

Values Max(Call& c) { return {fold(c, "max")}; }
Values Min(Call& c) { return {fold(c, "min")}; }
Values Sum(Call& c) { return {fold(c, "add")}; }
Values Mean(Call& c) {
  const double count = static_cast<double>(c.input_count());
  return {with_scalar(c, "mul", fold(c, "add"), 1 / count)};
}

// The result has the type of the base, whatever the type of the exponent.
Values Pow(Call& c) {
  Value *x = c.in(0), *y = aligned(c, x, c.in(1));
  const DType type = x->dtype();
  const DType computed = !is_float(type) && is_float(y->dtype()) ? y->dtype() : type;
  return {c.cast(c.add("pow", {c.cast(x, computed), c.cast(y, computed)}), type)};
}

Values Mod(Call& c) {
  const bool fmod = c.flag("fmod", false);
  return {c.add(fmod ? "mod" : "floor_mod", {c.in(0), c.in(1)})};
}

Values IsInf(Call& c) {
  return {c.add("is_inf", {c.in(0)},
                {{"positive", c.flag("detect_positive", true)},
                 {"negative", c.flag("detect_negative", true)}})};
}

// Bounds that are known become attributes, which passes can read. (A double holds every float, but
// not every i64.)
Values Clip(Call& c) {
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
Values PRelu(Call& c) {
  Value *x = c.in(0), *slope = c.in(1);
  if (c.opset < 7 && c.rank(x) > 2 && c.rank(slope) == 1) {
    std::vector<int64_t> axes(static_cast<size_t>(c.rank(x) - 2));
    std::iota(axes.begin(), axes.end(), 1);
    slope = c.add("unsqueeze", {slope}, {{"axes", axes}});
  }
  return {c.add("prelu", {x, slope})};
}

Values Identity(Call& c) { return {c.in(0)}; }

Values LeakyRelu(Call& c) {
  return {c.add("leaky_relu", {c.in(0)}, {{"alpha", c.f("alpha", 0.01)}})};
}

Values Elu(Call& c) { return {c.add("elu", {c.in(0)}, {{"alpha", c.f("alpha", 1.0)}})}; }

Values Selu(Call& c) {
  const double alpha = c.f("alpha", 1.67326319217681884765625);
  const double gamma = c.f("gamma", 1.05070102214813232421875);
  return {c.add("selu", {c.in(0)}, {{"alpha", alpha}, {"gamma", gamma}})};
}

Values Celu(Call& c) { return {c.add("celu", {c.in(0)}, {{"alpha", c.f("alpha", 1.0)}})}; }

Values HardSigmoid(Call& c) {
  return {
      c.add("hard_sigmoid", {c.in(0)}, {{"alpha", c.f("alpha", 0.2)}, {"beta", c.f("beta", 0.5)}})};
}

Values ThresholdedRelu(Call& c) {
  return {c.add("thresholded_relu", {c.in(0)}, {{"alpha", c.f("alpha", 1.0)}})};
}

// x where |x| > lambd, moved towards 0 by bias
Values Shrink(Call& c) {
  Value* x = c.in(0);
  const double bias = c.f("bias", 0.0), lambd = c.f("lambd", 0.5);
  Value* low = c.add("where", {with_scalar(c, "less", x, -lambd), with_scalar(c, "add", x, bias),
                               c.scalar_like(x, 0)});
  return {
      c.add("where", {with_scalar(c, "greater", x, lambd), with_scalar(c, "sub", x, bias), low})};
}

Values Gelu(Call& c) {
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

Values Swish(Call& c) { return {swish(c, c.in(0))}; }
Values SwiGLU(Call& c) { return {c.add("mul", {swish(c, c.in(0)), c.in(1)})}; }

const Converter kMathTable[] = {
    {"Abs", "abs"},
    {"Acos", "acos"},
    {"Acosh", "acosh"},
    {"Add", Add},
    {"And", And},
    {"Asin", "asin"},
    {"Asinh", "asinh"},
    {"Atan", "atan"},
    {"Atanh", "atanh"},
    {"Ceil", "ceil"},
    {"Celu", Celu},
    {"Clip", Clip},
    {"Cos", "cos"},
    {"Cosh", "cosh"},
    {"Div", Div},
    {"Elu", Elu},
    {"Equal", Equal},
    {"Erf", "erf"},
    {"Exp", "exp"},
    {"Floor", "floor"},
    {"Gelu", Gelu},
    {"Greater", Greater},
    {"GreaterOrEqual", "greater_equal"},
    {"HardSigmoid", HardSigmoid},
    {"HardSwish", "hard_swish"},
    {"Identity", Identity},
    {"IsInf", IsInf},
    {"IsNaN", "is_nan"},
    {"LeakyRelu", LeakyRelu},
    {"Less", Less},
    {"LessOrEqual", "less_equal"},
    {"Log", "log"},
    {"Max", Max},
    {"Mean", Mean},
    {"Min", Min},
    {"Mish", "mish"},
    {"Mod", Mod},
    {"Mul", Mul},
    {"Neg", "neg"},
    {"Not", "logical_not"},
    {"Or", Or},
    {"PRelu", PRelu},
    {"Pow", Pow},
    {"Reciprocal", "reciprocal"},
    {"Relu", "relu"},
    {"Round", "rint"},
    {"Selu", Selu},
    {"Shrink", Shrink},
    {"Sigmoid", "sigmoid"},
    {"Sign", "sign"},
    {"Sin", "sin"},
    {"Sinh", "sinh"},
    {"Softplus", "softplus"},
    {"Softsign", "softsign"},
    {"Sqrt", "sqrt"},
    {"Sub", Sub},
    {"Sum", Sum},
    {"SwiGLU", SwiGLU},
    {"Swish", Swish},
    {"Tan", "tan"},
    {"Tanh", "tanh"},
    {"ThresholdedRelu", ThresholdedRelu},
    {"Where", "where"},
    {"Xor", Xor},
};

}  // namespace

std::span<const Converter> math_converters() { return kMathTable; }

}  // namespace anymps::onnx
