// SPDX-License-Identifier: Apache-2.0
// The error function's kin, entropies, logits and sinc.
#include <numbers>

#include "ops/elementwise/elementwise_record.h"
#include "ops/gradient.h"

namespace anymps {

#define ERROR_FUNCTION(name, text, math) UNARY(name, kFloat, text, math).facts(kSteep)

ERROR_FUNCTION(erfc, "1 - erf(x), right where that vanishes.",
               "y = 2 / sqrt(pi) * integral(exp(-t^2), t = x .. infinity)")
    .aten("erfc")
    .domain(-3, 5);
ERROR_FUNCTION(erfcx, "erfc without its decay.", "y = exp(x^2) * erfc(x)").domain(-2, 20);
ERROR_FUNCTION(erfinv, "The inverse of erf; infinite at -1 and 1, NaN beyond.", "y: erf(y) = x")
    .aten("erfinv")
    .domain(-0.95, 0.95);
ERROR_FUNCTION(ndtri, "The place below which a part x of the normal distribution lies.",
               "y: (1 + erf(y / sqrt(2))) / 2 = x")
    .domain(0.01, 0.99);
ERROR_FUNCTION(log_ndtr,
               "The logarithm of the part of the normal distribution below x, right in both tails.",
               "y = ln((1 + erf(x / sqrt(2))) / 2)")
    .domain(-10, 4);
ERROR_FUNCTION(entr, "Elementwise entropy: 0 at 0, minus infinity below.", "y = -x * ln(x)")
    .domain(0.05, 4);
ERROR_FUNCTION(sinc, "The normalized sinc function, 1 at 0.", "y = sin(pi * x) / (pi * x)")
    .aten("sinc");
ERROR_FUNCTION(logit,
               "The inverse of sigmoid: infinite at 0 and 1, NaN beyond, unless eps draws x into "
               "[eps, 1 - eps] first.",
               "y = ln(x / (1 - x))")
    .attr("eps", -1.0, "below 0: x is taken as it is")
    .domain(0.05, 0.95);

#define WEIGHTED_LOGARITHM(name, text, math) \
  BINARY(name, kFloat, text, math).facts(kSteep).domain("b", 0.1, 4)

WEIGHTED_LOGARITHM(xlogy, "a times the logarithm of b, and 0 where a is 0.",
                   "y = a == 0 ? 0 : a * ln(b)");
WEIGHTED_LOGARITHM(xlog1py, "a times the logarithm of 1 + b, and 0 where a is 0.",
                   "y = a == 0 ? 0 : a * ln(1 + b)");

GRADIENT(erfc) {
  const Term x = ctx.x();
  ctx.set(0, ctx.dy() * (-(x * x)).op("exp") * (-2 * std::numbers::inv_sqrtpi));
}
GRADIENT(erfcx) { ctx.set(0, ctx.dy() * (ctx.x() * ctx.y() * 2 - 2 * std::numbers::inv_sqrtpi)); }
GRADIENT(erfinv) {
  const Term y = ctx.y();
  ctx.set(0, ctx.dy() * (y * y).op("exp") * (0.5 / std::numbers::inv_sqrtpi));
}
GRADIENT(ndtri) {
  const Term y = ctx.y();
  ctx.set(0, ctx.dy() * (y * y * 0.5).op("exp") * (std::numbers::sqrt2 / std::numbers::inv_sqrtpi));
}
GRADIENT(log_ndtr) {
  const Term scaled = (ctx.x() * (-1 / std::numbers::sqrt2)).op("erfcx");
  ctx.set(0, ctx.dy() / scaled * (std::numbers::sqrt2 * std::numbers::inv_sqrtpi));
}
GRADIENT(entr) { ctx.set(0, ctx.dy() * (-ctx.x().op("log") - 1)); }

GRADIENT(sinc) {
  // Near 0 the difference of cosine and sinc is lost: the series of it instead.
  const Term x = ctx.x(), near = x.op("abs") < 0.1, far = where(near, 1, x);
  const double pi2 = std::numbers::pi * std::numbers::pi;
  const Term square = x * x * pi2;
  const Term series =
      x * (((square * (1.0 / 45360) - 1.0 / 840) * square + 1.0 / 30) * square - 1.0 / 3) * pi2;
  const Term slope = ((far * std::numbers::pi).op("cos") - far.op("sinc")) / far;
  ctx.set(0, ctx.dy() * where(near, series, slope));
}

GRADIENT(logit) {
  const Term x = ctx.x(), slope = ctx.dy() / (x * (1 - x));
  const double eps = ctx.attrs().f("eps");
  if (eps < 0) return ctx.set(0, slope);
  ctx.set(0, where(both(x >= eps, x <= 1 - eps), slope, 0));
}

// The product is constant where a is 0, even where the logarithm is not finite.
static void weighted_logarithm(GradientContext& ctx, const char* logarithm, double pole) {
  const Term a = ctx.x(0), b = ctx.x(1), dy = ctx.dy();
  if (ctx.wants(0)) {
    const Term constant = both(a == 0.0, b <= pole);
    ctx.set(0, where(constant, 0, dy * where(constant, 1, b).op(logarithm)));
  }
  if (ctx.wants(1)) ctx.set(1, dy * a / (b - pole));
}
GRADIENT(xlogy) { weighted_logarithm(ctx, "log", 0); }
GRADIENT(xlog1py) { weighted_logarithm(ctx, "log1p", -1); }

}  // namespace anymps
