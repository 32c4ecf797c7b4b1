// SPDX-License-Identifier: Apache-2.0
// The gamma function's logarithm and its derivatives, Hurwitz's zeta function, and the incomplete
// gamma functions.
#include "ops/elementwise/elementwise_infer.h"
#include "ops/gradient.h"

namespace anymps {

OP(lgamma)
    .doc("The logarithm of the gamma function's absolute value; infinite at 0, -1, -2, …")
    .formula("y = ln(|gamma(x)|)")
    .aten("lgamma")
    .input("x", kFloat)
    .output("y")
    .facts(kElementwise | kSteep)
    .infer(infer_elementwise)
    .domain(0.2, 6);

OP(digamma)
    .doc("The derivative of lgamma. At 0 it is infinite, at -1, -2, … it is NaN.")
    .formula("y = gamma'(x) / gamma(x)")
    .aten("digamma")
    .input("x", kFloat)
    .output("y")
    .facts(kElementwise | kSteep)
    .infer(infer_elementwise)
    .domain(0.2, 6);

OP(polygamma)
    .doc("The n-th derivative of digamma.")
    .formula("y = (-1)^(n+1) * n! * zeta(n + 1, x)")
    .input("x", kFloat)
    .output("y")
    .attr("n", 1, "how many times; at least 0")
    .facts(kElementwise | kSteep)
    .infer([](InferContext& ctx) {
      ctx.check(ctx.attrs.i("n") >= 0, "n is {}, must be at least 0", ctx.attrs.i("n"));
      infer_elementwise(ctx);
    })
    .domain(0.4, 6);

OP(zeta)
    .doc(
        "Hurwitz's zeta function. Infinite where the exponent is 1 and where q is 0, -1, …; NaN "
        "for an exponent below 1, and for one that is not whole where q is negative.")
    .formula("y = sum((q + k)^-exponent, k = 0, 1, …)")
    .input("exponent", kFloat)
    .input("q", kFloat)
    .output("y")
    .facts(kElementwise | kSteep)
    .infer(infer_elementwise)
    .domain("exponent", 1.2, 6)
    .domain("q", 0.4, 5);

#define INCOMPLETE_GAMMA(name, text, math) \
  OP(name)                                 \
      .doc(text)                           \
      .formula(math)                       \
      .input("a", kFloat)                  \
      .input("x", kFloat)                  \
      .output("y")                         \
      .facts(kElementwise | kSteep)        \
      .infer(infer_elementwise)            \
      .domain(0.2, 5)

INCOMPLETE_GAMMA(igamma, "The lower incomplete gamma function, regularized: from 0 to 1.",
                 "y = integral(t^(a-1) * exp(-t), t = 0 .. x) / gamma(a)");
INCOMPLETE_GAMMA(igammac, "The upper incomplete gamma function, regularized: from 1 to 0.",
                 "y = integral(t^(a-1) * exp(-t), t = x .. infinity) / gamma(a)");
INCOMPLETE_GAMMA(igamma_slope, "How igamma changes with a.", "y = d igamma(a, x) / da");

OP(standard_gamma_slope)
    .doc(
        "How a number x that was drawn from the gamma distribution of a shape moves with the shape "
        "while the part of the distribution below it stays.")
    .formula("y = -igamma_slope(shape, x) / density(shape, x)")
    .input("shape", kFloat)
    .input("x", kFloat)
    .output("y")
    .facts(kElementwise | kSteep)
    .infer(infer_elementwise)
    .domain(0.2, 5);

GRADIENT(lgamma) { ctx.set(0, ctx.dy() * ctx.x().op("digamma")); }
GRADIENT(digamma) { ctx.set(0, ctx.dy() * ctx.x().op("polygamma", {{"n", 1}})); }
GRADIENT(polygamma) {
  ctx.set(0, ctx.dy() * ctx.x().op("polygamma", {{"n", ctx.attrs().i("n") + 1}}));
}

GRADIENT(zeta) {
  const Term s = ctx.x(0);
  if (ctx.wants(0)) ctx.refuse("there is no op for its derivative to the exponent");
  if (ctx.wants(1)) ctx.set(1, -(ctx.dy() * s) * ctx.add("zeta", {s + 1, ctx.x(1)}));
}

// The density is x^(a-1) e^-x / gamma(a).
static void incomplete(GradientContext& ctx, double sign) {
  const Term a = ctx.x(0), x = ctx.x(1), dy = ctx.dy() * sign;
  if (ctx.wants(0)) ctx.set(0, dy * ctx.add("igamma_slope", {a, x}));
  if (ctx.wants(1)) ctx.set(1, dy * (ctx.add("xlogy", {a - 1, x}) - x - a.op("lgamma")).op("exp"));
}
GRADIENT(igamma) { incomplete(ctx, 1); }
GRADIENT(igammac) { incomplete(ctx, -1); }
NO_GRADIENT(igamma_slope, "there is no op for the second derivatives of igamma to a");
NO_GRADIENT(standard_gamma_slope, "there is no op for the second derivatives of igamma to a");

}  // namespace anymps
