// SPDX-License-Identifier: Apache-2.0
// The gamma function's logarithm and its derivatives, Hurwitz's zeta function, and the incomplete
// gamma functions; the slope of a Dirichlet distribution's parts.
#include "ops/elementwise/elementwise_record.h"
#include "ops/gradient.h"

namespace anymps {

#define GAMMA(name, text, math) UNARY(name, kFloat, text, math).facts(kSteep)

GAMMA(lgamma, "The logarithm of the gamma function's absolute value; infinite at 0, -1, -2, …",
      "y = ln(|gamma(x)|)")
    .aten("lgamma")
    .domain(0.2, 6);
GAMMA(digamma, "The derivative of lgamma. At 0 it is infinite, at -1, -2, … it is NaN.",
      "y = gamma'(x) / gamma(x)")
    .aten("digamma")
    .domain(0.2, 6);
GAMMA(polygamma, "The n-th derivative of digamma.", "y = (-1)^(n+1) * n! * zeta(n + 1, x)")
    .attr("n", 1, "how many times; at least 0")
    .infer([](InferContext& ctx) {
      ctx.check(ctx.attrs.i("n") >= 0, "n is {}, must be at least 0", ctx.attrs.i("n"));
      infer_elementwise(ctx);
    })
    .domain(0.4, 6);

#define OF_TWO(name, first, second, text, math) \
  ELEMENTWISE(name, text, math).input(first, kFloat).input(second, kFloat).output("y").facts(kSteep)

OF_TWO(zeta, "exponent", "q",
       "Hurwitz's zeta function. Infinite where the exponent is 1 and where q is 0, -1, …; NaN for "
       "an exponent below 1, and for one that is not whole where q is negative.",
       "y = sum((q + k)^-exponent, k = 0, 1, …)")
    .domain("exponent", 1.2, 6)
    .domain("q", 0.4, 5);
OF_TWO(igamma, "a", "x", "The lower incomplete gamma function, regularized: from 0 to 1.",
       "y = integral(t^(a-1) * exp(-t), t = 0 .. x) / gamma(a)")
    .domain(0.2, 5);
OF_TWO(igammac, "a", "x", "The upper incomplete gamma function, regularized: from 1 to 0.",
       "y = integral(t^(a-1) * exp(-t), t = x .. infinity) / gamma(a)")
    .domain(0.2, 5);
OF_TWO(igamma_slope, "a", "x", "How igamma changes with a.", "y = d igamma(a, x) / da")
    .domain(0.2, 5);
OF_TWO(standard_gamma_slope, "shape", "x",
       "How a number x that was drawn from the gamma distribution of a shape moves with the shape "
       "while the part of the distribution below it stays.",
       "y = -igamma_slope(shape, x) / density(shape, x)")
    .domain(0.2, 5);
ELEMENTWISE(dirichlet_slope,
            "How a part x that was drawn from a Dirichlet distribution moves with its own shape "
            "while the part of its (beta) distribution below it stays, over 1 - x. Total is the "
            "sum of all shapes.",
            "y = -(d betainc(shape, total - shape, x) / d shape) / (density(x) * (1 - x))")
    .input("x", kFloat)
    .input("shape", kFloat)
    .input("total", kFloat)
    .output("y")
    .facts(kSteep)
    .domain("x", 0.05, 0.95)
    .domain("shape", 0.2, 3)
    .domain("total", 4, 9);

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
NO_GRADIENT(dirichlet_slope, "there is no op for the second derivatives of betainc");

}  // namespace anymps
