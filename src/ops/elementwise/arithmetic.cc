// SPDX-License-Identifier: Apache-2.0
// Elementwise arithmetic: one tensor, or two with NumPy broadcasting. Integers wrap.
#include <array>
#include <numbers>

#include "ops/elementwise/elementwise_record.h"
#include "ops/gradient_parts.h"

namespace anymps {

constexpr DTypeSet kFloatOrComplex = kFloat | kComplex;

// A function that ONNX, torch and MPSGraph all have under this name.
#define FUNCTION(name, dtypes, text) \
  UNARY(name, dtypes, text, "y = " #name "(x)").aten(#name).mps(#name "WithTensor:name:")

UNARY(identity, kEvery, "The input itself.", "y = x")
    .onnx("Identity")
    .mps("identityWithTensor:name:")
    .facts(kNoRounding)
    .tolerance(kExact)
    .view([](ViewContext& view) { return view.strides = view.input.strides, true; });

UNARY(exp, kFloatOrComplex, "e to the power x.", "y = exp(x)")
    .onnx("Exp")
    .aten("exp")
    .mps("exponentWithTensor:name:")
    .domain(-4, 4)
    .facts(kSteep);
UNARY(exp2, kFloatOrComplex, "2 to the power x.", "y = 2^x")
    .aten("exp2")
    .mps("exponentBase2WithTensor:name:")
    .domain(-4, 4)
    .facts(kSteep);
UNARY(exp10, kFloat, "10 to the power x.", "y = 10^x")
    .mps("exponentBase10WithTensor:name:")
    .domain(-2, 2)
    .facts(kSteep);
UNARY(expm1, kFloatOrComplex, "exp(x) - 1, exact near 0.", "y = exp(x) - 1")
    .aten("expm1")
    .domain(-4, 4)
    .facts(kSteep);
UNARY(log, kFloatOrComplex, "Natural logarithm.", "y = ln(x)")
    .onnx("Log")
    .aten("log")
    .mps("logarithmWithTensor:name:")
    .domain(0.1, 4)
    .facts(kSteep);
UNARY(log2, kFloatOrComplex, "Logarithm to base 2.", "y = ln(x) / ln(2)")
    .aten("log2")
    .mps("logarithmBase2WithTensor:name:")
    .domain(0.1, 4)
    .facts(kSteep);
UNARY(log10, kFloatOrComplex, "Logarithm to base 10.", "y = ln(x) / ln(10)")
    .aten("log10")
    .mps("logarithmBase10WithTensor:name:")
    .domain(0.1, 4)
    .facts(kSteep);
UNARY(log1p, kFloatOrComplex, "ln(1 + x), exact near 0.", "y = ln(1 + x)")
    .aten("log1p")
    .domain(-0.9, 4)
    .facts(kSteep);

UNARY(square, kNumber, "x times itself.", "y = x * x")
    .aten("square")
    .mps("squareWithTensor:name:")
    .mps("absoluteSquareWithTensor:name:")
    .facts(kSteep);
UNARY(sqrt, kFloatOrComplex, "Square root; NaN for a negative real.", "y = sqrt(x)")
    .onnx("Sqrt")
    .aten("sqrt")
    .mps("squareRootWithTensor:name:")
    .domain(0, 4);
UNARY(rsqrt, kFloatOrComplex, "Reciprocal of the square root.", "y = 1 / sqrt(x)")
    .aten("rsqrt")
    .mps("reciprocalSquareRootWithTensor:name:")
    .mps("reverseSquareRootWithTensor:name:")
    .domain(0.1, 4)
    .facts(kSteep);
UNARY(reciprocal, kFloatOrComplex, "One divided by x.", "y = 1 / x")
    .onnx("Reciprocal")
    .aten("reciprocal")
    .mps("reciprocalWithTensor:name:")
    .domain(0.1, 4)
    .facts(kSteep);

UNARY(abs, kReal, "Absolute value; the lowest integer wraps to itself.", "y = |x|")
    .onnx("Abs")
    .aten("abs")
    .mps("absoluteWithTensor:name:")
    .facts(kNoRounding)
    .tolerance(kExact);
UNARY(neg, kNumber, "Negative.", "y = -x")
    .onnx("Neg")
    .aten("neg")
    .mps("negativeWithTensor:name:")
    .facts(kNoRounding)
    .tolerance(kExact);
UNARY(sign, kReal, "-1, 0 or 1; NaN for NaN.", "y = (x > 0) - (x < 0)")
    .onnx("Sign")
    .aten("sign")
    .mps("signWithTensor:name:")
    .facts(kNoRounding)
    .tolerance(kExact);
ELEMENTWISE(signbit, "True where the sign is a minus: of -0 and of a NaN with one too.",
            "y = x < 0 or x is -0")
    .mps("signbitWithTensor:name:")
    .input("x", kReal)
    .output("y", "bool");
FUNCTION(ceil, kReal, "The lowest whole number that is not below x.")
    .onnx("Ceil")
    .tolerance(kExact);
FUNCTION(floor, kReal, "The highest whole number that is not above x.")
    .onnx("Floor")
    .tolerance(kExact);
UNARY(round, kReal, "The nearest whole number; halves away from zero.", "y = round(x)")
    .mps("roundWithTensor:name:")
    .tolerance(kExact);
UNARY(rint, kReal, "The nearest whole number; halves to the even one.", "y = rint(x)")
    .onnx("Round")
    .aten("round")
    .mps("rintWithTensor:name:")
    .tolerance(kExact);
UNARY(trunc, kReal, "x without its fraction.", "y = trunc(x)")
    .aten("trunc")
    .mps("truncateWithTensor:name:")
    .tolerance(kExact);

FUNCTION(sin, kFloatOrComplex, "Sine.").onnx("Sin");
FUNCTION(cos, kFloatOrComplex, "Cosine.").onnx("Cos");
FUNCTION(tan, kFloatOrComplex, "Tangent.").onnx("Tan").domain(-1.2, 1.2).facts(kSteep);
FUNCTION(sinh, kFloatOrComplex, "Hyperbolic sine.").onnx("Sinh").facts(kSteep);
FUNCTION(cosh, kFloatOrComplex, "Hyperbolic cosine.").onnx("Cosh").facts(kSteep);
FUNCTION(tanh, kFloatOrComplex, "Hyperbolic tangent.").onnx("Tanh");
FUNCTION(asin, kFloatOrComplex, "Inverse sine.").onnx("Asin").domain(-1, 1).facts(kSteep);
FUNCTION(acos, kFloatOrComplex, "Inverse cosine.").onnx("Acos").domain(-1, 1).facts(kSteep);
FUNCTION(atan, kFloatOrComplex, "Inverse tangent.").onnx("Atan");
FUNCTION(asinh, kFloatOrComplex, "Inverse hyperbolic sine.").onnx("Asinh");
FUNCTION(acosh, kFloatOrComplex, "Inverse hyperbolic cosine.").onnx("Acosh").domain(1.1, 4);
FUNCTION(atanh, kFloatOrComplex, "Inverse hyperbolic tangent.").onnx("Atanh").domain(-0.9, 0.9);
UNARY(erf, kFloat, "The error function.", "y = 2 / sqrt(pi) * integral(exp(-t^2), t = 0 .. x)")
    .onnx("Erf")
    .aten("erf")
    .mps("erfWithTensor:name:")
    .facts(kSteep);

BINARY(add, kAny, "Sum; of bools: or.", "y = a + b")
    .onnx("Add")
    .mps("additionWithPrimaryTensor:secondaryTensor:name:")
    .facts(kCommutative);
BINARY(sub, kNumber, "Difference.", "y = a - b")
    .onnx("Sub")
    .mps("subtractionWithPrimaryTensor:secondaryTensor:name:");
BINARY(mul, kAny, "Product; of bools: and.", "y = a * b")
    .onnx("Mul")
    .mps("multiplicationWithPrimaryTensor:secondaryTensor:name:")
    .facts(kCommutative);

static void infer_div(InferContext& ctx) {
  ctx.check(ctx.attrs.s("rounding") == "none" || !is_complex(ctx.dtype(0)),
            "rounding '{}' needs real inputs, they are {}", ctx.attrs.s("rounding"),
            name(ctx.dtype(0)));
  infer_elementwise(ctx);
}
BINARY(div, kNumber,
       "Quotient. Integers are divided toward zero unless rounding is 'floor', and dividing them "
       "by 0 is an error; floats follow IEEE 754.",
       "y = round(a / b)")
    .onnx("Div")
    .mps("divisionWithPrimaryTensor:secondaryTensor:name:")
    .attr("rounding", "none", {"none", "trunc", "floor"}, "how the quotient is made whole")
    .infer(infer_div)
    .domain("b", 1, 4);
BINARY(div_no_nan, kNumber, "Quotient, and 0 where b is 0.", "y = b == 0 ? 0 : a / b")
    .mps("divisionNoNaNWithPrimaryTensor:secondaryTensor:name:")
    .domain("b", 1, 4);
BINARY(mod, kReal, "Remainder with the sign of a, as C's fmod and %.", "y = a - trunc(a / b) * b")
    .mps("moduloWithPrimaryTensor:secondaryTensor:name:")
    .domain("b", 1, 4)
    .facts(kSteep);
BINARY(floor_mod, kReal, "Remainder with the sign of b, as Python's %.", "y = a - floor(a / b) * b")
    .mps("floorModuloWithPrimaryTensor:secondaryTensor:name:")
    .domain("b", 1, 4)
    .facts(kSteep);
BINARY(pow, kNumber, "a to the power b. Of integers, a negative power rounds toward zero.",
       "y = a^b")
    .onnx("Pow")
    .mps("powerWithPrimaryTensor:secondaryTensor:name:")
    .domain("a", 0.2, 3)
    .domain("b", -2, 2)
    .facts(kSteep);
BINARY(min, kOrdered, "The lower of two.", "y = a < b ? a : b")
    .mps("minimumWithPrimaryTensor:secondaryTensor:name:")
    .mps("minimumWithNaNPropagationWithPrimaryTensor:secondaryTensor:name:")
    .attr("propagate_nan", true, "NaN on either side gives NaN; otherwise the other side")
    .facts(kCommutative | kNoRounding)
    .tolerance(kExact);
BINARY(max, kOrdered, "The higher of two.", "y = a > b ? a : b")
    .mps("maximumWithPrimaryTensor:secondaryTensor:name:")
    .mps("maximumWithNaNPropagationWithPrimaryTensor:secondaryTensor:name:")
    .attr("propagate_nan", true, "NaN on either side gives NaN; otherwise the other side")
    .facts(kCommutative | kNoRounding)
    .tolerance(kExact);
BINARY(atan2, kFloat, "The angle of the point (b, a), in (-pi, pi].", "y = atan2(a, b)")
    .mps("atan2WithPrimaryTensor:secondaryTensor:name:")
    .domain("b", 0.2, 2);

// Gradients. Where two inputs are equal, min and max give half to each, as PyTorch does.

#define UNARY_GRADIENT(name, dx)                                         \
  GRADIENT(name) {                                                       \
    [[maybe_unused]] const Term x = ctx.x(), y = ctx.y(), dy = ctx.dy(); \
    ctx.set(0, dx);                                                      \
  }

// Of a function that complex numbers have too, by its slope.
#define HOLOMORPHIC_GRADIENT(name, slope)                 \
  COMPLEX_GRADIENT(name) {                                \
    [[maybe_unused]] const Term x = ctx.x(), y = ctx.y(); \
    ctx.set(0, ctx.dy() * conjugated(slope));             \
  }

COMPLEX_GRADIENT(identity) { ctx.set(0, ctx.dy()); }
COMPLEX_GRADIENT(neg) { ctx.set(0, -ctx.dy()); }

UNARY_GRADIENT(exp10, dy* y* std::numbers::ln10)
UNARY_GRADIENT(abs, dy* x.op("sign"))
UNARY_GRADIENT(erf, dy*(-(x* x)).op("exp") * (2 * std::numbers::inv_sqrtpi))
#undef UNARY_GRADIENT

HOLOMORPHIC_GRADIENT(exp, y)
HOLOMORPHIC_GRADIENT(square, x * 2)
HOLOMORPHIC_GRADIENT(sqrt, 0.5 / y)
HOLOMORPHIC_GRADIENT(rsqrt, y* y* y * -0.5)
HOLOMORPHIC_GRADIENT(reciprocal, -(y* y))
HOLOMORPHIC_GRADIENT(sin, x.op("cos"))
HOLOMORPHIC_GRADIENT(cos, -x.op("sin"))
HOLOMORPHIC_GRADIENT(tan, 1 + y * y)
HOLOMORPHIC_GRADIENT(sinh, x.op("cosh"))
HOLOMORPHIC_GRADIENT(cosh, x.op("sinh"))
HOLOMORPHIC_GRADIENT(tanh, 1 - y * y)
HOLOMORPHIC_GRADIENT(exp2, y* std::numbers::ln2)
HOLOMORPHIC_GRADIENT(expm1, y + 1)
HOLOMORPHIC_GRADIENT(asin, (1 - x * x).op("rsqrt"))
HOLOMORPHIC_GRADIENT(acos, -(1 - x * x).op("rsqrt"))
HOLOMORPHIC_GRADIENT(asinh, (1 + x * x).op("rsqrt"))
HOLOMORPHIC_GRADIENT(acosh, (x - 1).op("rsqrt") * (x + 1).op("rsqrt"))
#undef HOLOMORPHIC_GRADIENT
// By the reciprocal of the slope.
#define QUOTIENT_GRADIENT(name, below)        \
  COMPLEX_GRADIENT(name) {                    \
    const Term x = ctx.x();                   \
    ctx.set(0, ctx.dy() / conjugated(below)); \
  }
QUOTIENT_GRADIENT(log, x)
QUOTIENT_GRADIENT(log2, x* std::numbers::ln2)
QUOTIENT_GRADIENT(log10, x* std::numbers::ln10)
QUOTIENT_GRADIENT(log1p, x + 1)
QUOTIENT_GRADIENT(atan, 1 + x * x)
QUOTIENT_GRADIENT(atanh, (1 - x) * (1 + x))
#undef QUOTIENT_GRADIENT

ZERO_GRADIENT(sign, "constant between its steps");
ZERO_GRADIENT(ceil, "constant between its steps");
ZERO_GRADIENT(floor, "constant between its steps");
ZERO_GRADIENT(round, "constant between its steps");
ZERO_GRADIENT(rint, "constant between its steps");
ZERO_GRADIENT(trunc, "constant between its steps");

COMPLEX_GRADIENT(add) {
  ctx.set(0, ctx.dy());
  ctx.set(1, ctx.dy());
}

COMPLEX_GRADIENT(sub) {
  ctx.set(0, ctx.dy());
  if (ctx.wants(1)) ctx.set(1, -ctx.dy());
}

COMPLEX_GRADIENT(mul) {
  if (ctx.wants(0)) ctx.set(0, ctx.dy() * conjugated(ctx.x(1)));
  if (ctx.wants(1)) ctx.set(1, ctx.dy() * conjugated(ctx.x(0)));
}

COMPLEX_GRADIENT(div) {
  if (ctx.attrs().s("rounding") != "none") return;  // constant between its steps
  const Term da = ctx.dy() / conjugated(ctx.x(1));
  ctx.set(0, da);
  if (ctx.wants(1)) ctx.set(1, -da * conjugated(ctx.y()));
}

static void modulo(GradientContext& ctx, const char* rounding) {
  ctx.set(0, ctx.dy());
  if (!ctx.wants(1)) return;
  const Term quotient = ctx.add("div", {ctx.x(0), ctx.x(1)}, {{"rounding", rounding}});
  ctx.set(1, -ctx.dy() * quotient);
}
GRADIENT(mod) { modulo(ctx, "trunc"); }
GRADIENT(floor_mod) { modulo(ctx, "floor"); }

COMPLEX_GRADIENT(pow) {
  const Term a = ctx.x(0), b = ctx.x(1), dy = ctx.dy();
  if (is_complex(dy.dtype())) {
    if (ctx.wants(0)) ctx.set(0, dy * conjugated(b * ctx.add("pow", {a, b - 1})));
    if (ctx.wants(1)) ctx.set(1, dy * conjugated(ctx.y() * a.op("log")));
    return;
  }
  // A power of 0 is constant, even where a is 0; and 0 to a power above 0 stays 0.
  if (ctx.wants(0))
    ctx.set(0, where(b == 0.0, 0, dy * b * ctx.add("pow", {a, where(b == 0.0, 1, b) - 1})));
  if (ctx.wants(1)) {
    const Term zero = both(a == 0.0, b >= 0);
    ctx.set(1, where(zero, 0, dy * ctx.y() * where(zero, 1, a).op("log")));
  }
}

static void extremum(GradientContext& ctx, const Term& first_wins) {
  const Term dy = ctx.dy(), half = dy * 0.5, tie = ctx.x(0) == ctx.x(1);
  if (ctx.wants(0)) ctx.set(0, where(tie, half, where(first_wins, dy, 0)));
  if (ctx.wants(1)) ctx.set(1, where(tie, half, where(first_wins, 0, dy)));
}
GRADIENT(min) { extremum(ctx, ctx.x(0) < ctx.x(1)); }
GRADIENT(max) { extremum(ctx, ctx.x(0) > ctx.x(1)); }

GRADIENT(atan2) {
  const Term a = ctx.x(0), b = ctx.x(1), scaled = ctx.dy() / (a * a + b * b);
  if (ctx.wants(0)) ctx.set(0, scaled * b);
  if (ctx.wants(1)) ctx.set(1, -scaled * a);
}

ZERO_GRADIENT(signbit, "gives bool");

COMPLEX_GRADIENT(div_no_nan) {
  const Term each = ctx.add("div_no_nan", {ctx.dy(), conjugated(ctx.x(1))});
  ctx.set(0, each);
  if (ctx.wants(1)) ctx.set(1, -each * conjugated(ctx.y()));
}

KNOWN_ELEMENTS(identity) { return x[0]; }
KNOWN_ELEMENTS(min) { return min(x[0], x[1]); }
KNOWN_ELEMENTS(max) { return max(x[0], x[1]); }

KNOWN_ELEMENTS(add) {
  int64_t result = 0;
  if (both_known(x) && __builtin_add_overflow(x[0].value(), x[1].value(), &result)) return {};
  return x[0] + x[1];
}

KNOWN_ELEMENTS(sub) {
  int64_t result = 0;
  if (both_known(x) && __builtin_sub_overflow(x[0].value(), x[1].value(), &result)) return {};
  return x[0] - x[1];
}

KNOWN_ELEMENTS(neg) { return known_sub(attrs, std::array<Dim, 2>{Dim(0), x[0]}); }

KNOWN_ELEMENTS(mul) {
  int64_t result = 0;
  if (both_known(x) && __builtin_mul_overflow(x[0].value(), x[1].value(), &result)) return {};
  return x[0] * x[1];
}

// Only where rounding down and toward zero are the same, unless the numbers are known.
KNOWN_ELEMENTS(div) {
  if (x[1].is(0)) return {};
  if (x[1].is(-1)) return known_neg(attrs, x);
  if (attrs.s("rounding") == "floor") return floor_div(x[0], x[1]);
  if (both_known(x)) return x[0].value() / x[1].value();
  if (never_negative(x[0]) && never_negative(x[1])) return floor_div(x[0], x[1]);
  return {};
}

KNOWN_ELEMENTS(floor_mod) {
  if (x[1].is(0)) return {};
  if (x[1].is(1) || x[1].is(-1)) return Dim(0);
  if (!both_known(x)) return x[0] - floor_div(x[0], x[1]) * x[1];
  const int64_t b = x[1].value(), remainder = x[0].value() % b;
  return remainder != 0 && (remainder < 0) != (b < 0) ? remainder + b : remainder;
}

KNOWN_ELEMENTS(mod) {
  if (x[1].is(0)) return {};
  if (both_known(x)) return x[1].is(-1) ? 0 : x[0].value() % x[1].value();
  if (never_negative(x[0]) && never_negative(x[1])) return known_floor_mod(attrs, x);
  return {};
}

}  // namespace anymps
