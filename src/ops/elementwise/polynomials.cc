// SPDX-License-Identifier: Apache-2.0
// Orthogonal polynomials: x and the degree are tensors that broadcast. The fraction of a degree is
// cut off; a negative degree gives 0, one that would take a million steps NaN.
#include "ops/elementwise/elementwise_record.h"
#include "ops/gradient.h"

namespace anymps {

#define POLYNOMIAL(name, text, math)            \
  ELEMENTWISE(name, text, math)                 \
      .input("x", kFloat)                       \
      .input("n", kFloat, "T", "whole numbers") \
      .output("y")                              \
      .facts(kSteep)                            \
      .domain("x", -1.5, 1.5)                   \
      .domain("n", 0, 7)

#define CHEBYSHEV(name, number, first)                                            \
  POLYNOMIAL(name, "Chebyshev's polynomial of the " number " kind and degree n.", \
             "y[0] = 1, y[1] = " first ", y[n] = 2 * x * y[n-1] - y[n-2]")
#define SHIFTED(name, of, number)                                                          \
  POLYNOMIAL(name, "Chebyshev's polynomial of the " number " kind and degree n on [0, 1]", \
             "y = " #of "(2 * x - 1, n)")

CHEBYSHEV(chebyshev_polynomial_t, "first", "x");
SHIFTED(shifted_chebyshev_polynomial_t, chebyshev_polynomial_t, "first");
CHEBYSHEV(chebyshev_polynomial_u, "second", "2 * x");
SHIFTED(shifted_chebyshev_polynomial_u, chebyshev_polynomial_u, "second");
CHEBYSHEV(chebyshev_polynomial_v, "third", "2 * x - 1");
SHIFTED(shifted_chebyshev_polynomial_v, chebyshev_polynomial_v, "third");
CHEBYSHEV(chebyshev_polynomial_w, "fourth", "2 * x + 1");
SHIFTED(shifted_chebyshev_polynomial_w, chebyshev_polynomial_w, "fourth");
POLYNOMIAL(hermite_polynomial_h, "Hermite's polynomial of degree n, as physicists have it.",
           "y[0] = 1, y[1] = 2 * x, y[n] = 2 * x * y[n-1] - 2 * (n - 1) * y[n-2]");
POLYNOMIAL(hermite_polynomial_he, "Hermite's polynomial of degree n, as statisticians have it.",
           "y[0] = 1, y[1] = x, y[n] = x * y[n-1] - (n - 1) * y[n-2]");
POLYNOMIAL(laguerre_polynomial_l, "Laguerre's polynomial of degree n.",
           "y[0] = 1, y[1] = 1 - x, y[n] = ((2 * n - 1 - x) * y[n-1] - (n - 1) * y[n-2]) / n");
POLYNOMIAL(legendre_polynomial_p, "Legendre's polynomial of degree n.",
           "y[0] = 1, y[1] = x, y[n] = ((2 * n - 1) * x * y[n-1] - (n - 1) * y[n-2]) / n");

// Gradients to x; the degree is cut to whole numbers, so y is constant in it.

// The same polynomial, or another, of a degree that differs.
static Term of_degree(GradientContext& ctx, const char* op, const Term& x, const Term& n) {
  return ctx.add(op, {x, n});
}

GRADIENT(chebyshev_polynomial_t) {
  const Term n = ctx.x(1).op("trunc");
  ctx.set(0, ctx.dy() * n * of_degree(ctx, "chebyshev_polynomial_u", ctx.x(0), n - 1));
}

GRADIENT(chebyshev_polynomial_u) {
  // At -1 and 1 the quotient is 0 over 0.
  const Term x = ctx.x(0), n = ctx.x(1).op("trunc"), end = x.op("abs") == 1.0;
  const Term next = of_degree(ctx, "chebyshev_polynomial_t", x, n + 1);
  const Term at_end = n * (n + 1) * (n + 2) * next * (1.0 / 3);
  const Term slope = ((n + 1) * next - x * ctx.y()) / where(end, 1, x * x - 1);
  ctx.set(0, ctx.dy() * where(end, at_end, slope));
}

static void through_second_kind(GradientContext& ctx, bool sum) {
  const Term x = ctx.x(0), n = ctx.x(1);
  const Term here = of_degree(ctx, "chebyshev_polynomial_u", x, n),
             before = of_degree(ctx, "chebyshev_polynomial_u", x, n - 1);
  ctx.through({sum ? here + before : here - before});
}
GRADIENT(chebyshev_polynomial_v) { through_second_kind(ctx, false); }
GRADIENT(chebyshev_polynomial_w) { through_second_kind(ctx, true); }

#define SHIFTED_GRADIENT(name) \
  GRADIENT(shifted_##name) { ctx.through({of_degree(ctx, #name, ctx.x(0) * 2 - 1, ctx.x(1))}); }
SHIFTED_GRADIENT(chebyshev_polynomial_t)
SHIFTED_GRADIENT(chebyshev_polynomial_u)
SHIFTED_GRADIENT(chebyshev_polynomial_v)
SHIFTED_GRADIENT(chebyshev_polynomial_w)

GRADIENT(hermite_polynomial_h) {
  const Term n = ctx.x(1).op("trunc");
  ctx.set(0, ctx.dy() * n * of_degree(ctx, "hermite_polynomial_h", ctx.x(0), n - 1) * 2);
}

GRADIENT(hermite_polynomial_he) {
  const Term n = ctx.x(1).op("trunc");
  ctx.set(0, ctx.dy() * n * of_degree(ctx, "hermite_polynomial_he", ctx.x(0), n - 1));
}

GRADIENT(laguerre_polynomial_l) {
  const Term x = ctx.x(0), n = ctx.x(1).op("trunc"), zero = x == 0.0;
  const Term before = of_degree(ctx, "laguerre_polynomial_l", x, n - 1);
  const Term slope = n * (ctx.y() - before) / where(zero, 1, x);
  ctx.set(0, ctx.dy() * where(zero, -n * ctx.y(), slope));
}

GRADIENT(legendre_polynomial_p) {
  const Term x = ctx.x(0), n = ctx.x(1).op("trunc"), end = x.op("abs") == 1.0;
  const Term before = of_degree(ctx, "legendre_polynomial_p", x, n - 1),
             after = of_degree(ctx, "legendre_polynomial_p", x, n + 1);
  const Term at_end = n * (n + 1) * after * 0.5;
  const Term slope = n * (x * ctx.y() - before) / where(end, 1, x * x - 1);
  ctx.set(0, ctx.dy() * where(end, at_end, slope));
}

}  // namespace anymps
