// SPDX-License-Identifier: Apache-2.0
// Elementwise arithmetic: one tensor, or two with NumPy broadcasting. Integers wrap.
#include "ops/elementwise/elementwise_infer.h"

namespace anymps {

#define UNARY(name, dtypes, text, math) \
  OP(name)                              \
      .doc(text)                        \
      .formula(math)                    \
      .input("x", dtypes)               \
      .output("y")                      \
      .facts(kElementwise)              \
      .infer(infer_elementwise)
#define BINARY(name, dtypes, text, math) \
  OP(name)                               \
      .doc(text)                         \
      .formula(math)                     \
      .input("a", dtypes)                \
      .input("b", dtypes)                \
      .output("y")                       \
      .facts(kElementwise)               \
      .infer(infer_elementwise)

constexpr DTypeSet kFloatOrComplex = kFloat | kComplex;
constexpr Tolerance kExact{.f32 = 0, .f16 = 0, .bf16 = 0, .f64 = 0};

UNARY(identity, kEvery, "The input itself.", "y = x")
    .mps("identityWithTensor:name:")
    .facts(kNoRounding)
    .tolerance(kExact)
    .view([](ViewContext& view) { return view.strides = view.input.strides, true; });

UNARY(exp, kFloatOrComplex, "e to the power x.", "y = exp(x)")
    .mps("exponentWithTensor:name:")
    .domain(-4, 4)
    .facts(kSteep);
UNARY(exp2, kFloat, "2 to the power x.", "y = 2^x")
    .mps("exponentBase2WithTensor:name:")
    .domain(-4, 4)
    .facts(kSteep);
UNARY(exp10, kFloat, "10 to the power x.", "y = 10^x")
    .mps("exponentBase10WithTensor:name:")
    .domain(-2, 2)
    .facts(kSteep);
UNARY(expm1, kFloat, "exp(x) - 1, exact near 0.", "y = exp(x) - 1").domain(-4, 4).facts(kSteep);
UNARY(log, kFloatOrComplex, "Natural logarithm.", "y = ln(x)")
    .mps("logarithmWithTensor:name:")
    .domain(0.1, 4)
    .facts(kSteep);
UNARY(log2, kFloat, "Logarithm to base 2.", "y = ln(x) / ln(2)")
    .mps("logarithmBase2WithTensor:name:")
    .domain(0.1, 4)
    .facts(kSteep);
UNARY(log10, kFloat, "Logarithm to base 10.", "y = ln(x) / ln(10)")
    .mps("logarithmBase10WithTensor:name:")
    .domain(0.1, 4)
    .facts(kSteep);
UNARY(log1p, kFloat, "ln(1 + x), exact near 0.", "y = ln(1 + x)").domain(-0.9, 4).facts(kSteep);

UNARY(square, kNumber, "x times itself.", "y = x * x")
    .mps("squareWithTensor:name:")
    .mps("absoluteSquareWithTensor:name:")
    .facts(kSteep);
UNARY(sqrt, kFloatOrComplex, "Square root; NaN for a negative real.", "y = sqrt(x)")
    .mps("squareRootWithTensor:name:")
    .domain(0, 4);
UNARY(rsqrt, kFloatOrComplex, "Reciprocal of the square root.", "y = 1 / sqrt(x)")
    .mps("reciprocalSquareRootWithTensor:name:")
    .mps("reverseSquareRootWithTensor:name:")
    .domain(0.1, 4)
    .facts(kSteep);
UNARY(reciprocal, kFloatOrComplex, "One divided by x.", "y = 1 / x")
    .mps("reciprocalWithTensor:name:")
    .domain(0.1, 4)
    .facts(kSteep);

UNARY(abs, kReal, "Absolute value; the lowest integer wraps to itself.", "y = |x|")
    .mps("absoluteWithTensor:name:")
    .facts(kNoRounding)
    .tolerance(kExact);
UNARY(neg, kNumber, "Negative.", "y = -x")
    .mps("negativeWithTensor:name:")
    .facts(kNoRounding)
    .tolerance(kExact);
UNARY(sign, kReal, "-1, 0 or 1; NaN for NaN.", "y = (x > 0) - (x < 0)")
    .mps("signWithTensor:name:")
    .facts(kNoRounding)
    .tolerance(kExact);
OP(signbit)
    .doc("True where the sign is a minus: of -0 and of a NaN with one too.")
    .formula("y = x < 0 or x is -0")
    .mps("signbitWithTensor:name:")
    .input("x", kReal)
    .output("y", "bool")
    .facts(kElementwise)
    .infer(infer_elementwise);
UNARY(ceil, kReal, "The lowest whole number that is not below x.", "y = ceil(x)")
    .mps("ceilWithTensor:name:")
    .tolerance(kExact);
UNARY(floor, kReal, "The highest whole number that is not above x.", "y = floor(x)")
    .mps("floorWithTensor:name:")
    .tolerance(kExact);
UNARY(round, kReal, "The nearest whole number; halves away from zero.", "y = round(x)")
    .mps("roundWithTensor:name:")
    .tolerance(kExact);
UNARY(rint, kReal, "The nearest whole number; halves to the even one.", "y = rint(x)")
    .mps("rintWithTensor:name:")
    .tolerance(kExact);
UNARY(trunc, kReal, "x without its fraction.", "y = trunc(x)")
    .mps("truncateWithTensor:name:")
    .tolerance(kExact);

UNARY(sin, kFloatOrComplex, "Sine.", "y = sin(x)").mps("sinWithTensor:name:");
UNARY(cos, kFloatOrComplex, "Cosine.", "y = cos(x)").mps("cosWithTensor:name:");
UNARY(tan, kFloatOrComplex, "Tangent.", "y = tan(x)")
    .mps("tanWithTensor:name:")
    .domain(-1.2, 1.2)
    .facts(kSteep);
UNARY(sinh, kFloatOrComplex, "Hyperbolic sine.", "y = sinh(x)")
    .mps("sinhWithTensor:name:")
    .facts(kSteep);
UNARY(cosh, kFloatOrComplex, "Hyperbolic cosine.", "y = cosh(x)")
    .mps("coshWithTensor:name:")
    .facts(kSteep);
UNARY(tanh, kFloatOrComplex, "Hyperbolic tangent.", "y = tanh(x)").mps("tanhWithTensor:name:");
UNARY(asin, kFloat, "Inverse sine.", "y = asin(x)")
    .mps("asinWithTensor:name:")
    .domain(-1, 1)
    .facts(kSteep);
UNARY(acos, kFloat, "Inverse cosine.", "y = acos(x)")
    .mps("acosWithTensor:name:")
    .domain(-1, 1)
    .facts(kSteep);
UNARY(atan, kFloat, "Inverse tangent.", "y = atan(x)").mps("atanWithTensor:name:");
UNARY(asinh, kFloat, "Inverse hyperbolic sine.", "y = asinh(x)").mps("asinhWithTensor:name:");
UNARY(acosh, kFloat, "Inverse hyperbolic cosine.", "y = acosh(x)")
    .mps("acoshWithTensor:name:")
    .domain(1.1, 4);
UNARY(atanh, kFloat, "Inverse hyperbolic tangent.", "y = atanh(x)")
    .mps("atanhWithTensor:name:")
    .domain(-0.9, 0.9);
UNARY(erf, kFloat, "The error function.", "y = 2 / sqrt(pi) * integral(exp(-t^2), t = 0 .. x)")
    .mps("erfWithTensor:name:")
    .facts(kSteep);

BINARY(add, kNumber, "Sum.", "y = a + b")
    .mps("additionWithPrimaryTensor:secondaryTensor:name:")
    .facts(kCommutative);
BINARY(sub, kNumber, "Difference.", "y = a - b")
    .mps("subtractionWithPrimaryTensor:secondaryTensor:name:");
BINARY(mul, kNumber, "Product.", "y = a * b")
    .mps("multiplicationWithPrimaryTensor:secondaryTensor:name:")
    .facts(kCommutative);

static void infer_div(InferContext& ctx) {
  ctx.check(ctx.attrs.s("rounding") == "none" || ctx.dtype(0) != DType::kC64,
            "rounding '{}' needs real inputs, they are c64", ctx.attrs.s("rounding"));
  infer_elementwise(ctx);
}
BINARY(div, kNumber,
       "Quotient. Integers are divided toward zero unless rounding is 'floor', and dividing them "
       "by 0 is an error; floats follow IEEE 754.",
       "y = round(a / b)")
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
    .mps("powerWithPrimaryTensor:secondaryTensor:name:")
    .domain("a", 0.2, 3)
    .domain("b", -2, 2)
    .facts(kSteep);
BINARY(min, kReal, "The lower of two.", "y = a < b ? a : b")
    .mps("minimumWithPrimaryTensor:secondaryTensor:name:")
    .mps("minimumWithNaNPropagationWithPrimaryTensor:secondaryTensor:name:")
    .attr("propagate_nan", true, "NaN on either side gives NaN; otherwise the other side")
    .facts(kCommutative | kNoRounding)
    .tolerance(kExact);
BINARY(max, kReal, "The higher of two.", "y = a > b ? a : b")
    .mps("maximumWithPrimaryTensor:secondaryTensor:name:")
    .mps("maximumWithNaNPropagationWithPrimaryTensor:secondaryTensor:name:")
    .attr("propagate_nan", true, "NaN on either side gives NaN; otherwise the other side")
    .facts(kCommutative | kNoRounding)
    .tolerance(kExact);
BINARY(atan2, kFloat, "The angle of the point (b, a), in (-pi, pi].", "y = atan2(a, b)")
    .mps("atan2WithPrimaryTensor:secondaryTensor:name:")
    .domain("b", 0.2, 2);

}  // namespace anymps
