// SPDX-License-Identifier: Apache-2.0
// Elementwise arithmetic of pairs beyond the four operations, and of triples with a weight.
#include <numbers>

#include "ops/elementwise/elementwise_record.h"
#include "ops/gradient.h"

namespace anymps {

BINARY(hypot, kFloat, "The length of the vector (a, b), without overflow on the way.",
       "y = sqrt(a^2 + b^2)")
    .facts(kCommutative);
BINARY(copysign, kFloat, "a with the sign of b, be that of a zero or of NaN.",
       "y = signbit(b) ? -|a| : |a|")
    .facts(kNoRounding)
    .tolerance({.f32 = 0, .f16 = 0, .bf16 = 0, .f64 = 0});
BINARY(heaviside, kReal, "A step from 0 to 1 with the value b at 0; 0 for NaN.",
       "y = a == 0 ? b : a > 0")
    .facts(kNoRounding)
    .tolerance({.f32 = 0, .f16 = 0, .bf16 = 0, .f64 = 0});
BINARY(logaddexp, kFloat, "The logarithm of a sum of exponentials, without overflow.",
       "y = ln(exp(a) + exp(b))")
    .facts(kCommutative | kSteep)
    .domain(-6, 6);
BINARY(logaddexp2, kFloat, "The logarithm to base 2 of a sum of powers of 2, without overflow.",
       "y = log2(2^a + 2^b)")
    .facts(kCommutative | kSteep)
    .domain(-6, 6);
BINARY(ldexp, kFloat, "a times a power of 2.", "y = a * 2^b").facts(kSteep).domain("b", -4, 4);
BINARY(gcd, kInt, "The greatest common divisor, never negative; 0 of two zeros.", "y = gcd(a, b)")
    .facts(kCommutative)
    .domain(-60, 60);
BINARY(lcm, kInt, "The least common multiple, never negative; 0 if either is 0. It wraps.",
       "y = |a * b| / gcd(a, b)")
    .facts(kCommutative)
    .domain(-11, 11);

ELEMENTWISE(lerp, "Between a and b by a weight: a at 0, b at 1, and further on the line beyond.",
            "y = a + weight * (b - a)")
    .input("a", kFloat)
    .input("b", kFloat)
    .input("weight", kFloat)
    .output("y");

#define ADD_WEIGHTED(name, text, math)               \
  ELEMENTWISE(name, text, math)                      \
      .input("x", kFloat)                            \
      .input("a", kFloat)                            \
      .input("b", kFloat)                            \
      .output("y")                                   \
      .attr("value", 1.0, "factor of what is added") \
      .facts(kSteep)

ADD_WEIGHTED(addcmul, "A product, scaled and added.", "y = x + value * a * b");
ADD_WEIGHTED(addcdiv, "A quotient, scaled and added.", "y = x + value * a / b").domain("b", 1, 4);

GRADIENT(hypot) {
  // The slope at (0, 0) is 0.
  const Term y = ctx.y(), zero = y == 0.0;
  const Term scaled = where(zero, 0, ctx.dy() / where(zero, 1, y));
  if (ctx.wants(0)) ctx.set(0, scaled * ctx.x(0));
  if (ctx.wants(1)) ctx.set(1, scaled * ctx.x(1));
}

GRADIENT(copysign) {
  const Term a = ctx.x(0);
  ctx.set(0, ctx.dy() * a.op("sign") * ctx.y().op("sign"));
}

GRADIENT(heaviside) {
  if (ctx.wants(1)) ctx.set(1, where(ctx.x(0) == 0.0, ctx.dy(), 0));
}

// Each power's part of the sum. Of equal infinities each has half.
static void sum_of_powers(GradientContext& ctx, double log_base) {
  const Term a = ctx.x(0), b = ctx.x(1), dy = ctx.dy();
  const Term part = where(a == b, 0, (a - b) * log_base).op("sigmoid");
  if (ctx.wants(0)) ctx.set(0, dy * part);
  if (ctx.wants(1)) ctx.set(1, dy * (1 - part));
}
GRADIENT(logaddexp) { sum_of_powers(ctx, 1); }
GRADIENT(logaddexp2) { sum_of_powers(ctx, std::numbers::ln2); }

GRADIENT(ldexp) {
  if (ctx.wants(0)) ctx.set(0, ctx.add("ldexp", {ctx.dy(), ctx.x(1)}));
  if (ctx.wants(1)) ctx.set(1, ctx.dy() * ctx.y() * std::numbers::ln2);
}

ZERO_GRADIENT(gcd, "of integers");
ZERO_GRADIENT(lcm, "of integers");

GRADIENT(lerp) {
  const Term a = ctx.x(0), b = ctx.x(1), weight = ctx.x(2), dy = ctx.dy();
  if (ctx.wants(0)) ctx.set(0, dy * (1 - weight));
  if (ctx.wants(1)) ctx.set(1, dy * weight);
  if (ctx.wants(2)) ctx.set(2, dy * (b - a));
}

GRADIENT(addcmul) {
  ctx.set(0, ctx.dy());
  const Term scaled = ctx.dy() * ctx.attrs().f("value");
  if (ctx.wants(1)) ctx.set(1, scaled * ctx.x(2));
  if (ctx.wants(2)) ctx.set(2, scaled * ctx.x(1));
}

GRADIENT(addcdiv) {
  ctx.set(0, ctx.dy());
  const Term each = ctx.dy() * ctx.attrs().f("value") / ctx.x(2);
  if (ctx.wants(1)) ctx.set(1, each);
  if (ctx.wants(2)) ctx.set(2, -each * ctx.x(1) / ctx.x(2));
}

}  // namespace anymps
