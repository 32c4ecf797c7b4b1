// SPDX-License-Identifier: Apache-2.0
// Gradients of elementwise arithmetic. Where two inputs are equal, min and max give half of the
// gradient to each, as PyTorch does.
#include <numbers>

#include "ops/gradient.h"

namespace anymps {

#define UNARY(name, dx)                                                  \
  GRADIENT(name) {                                                       \
    [[maybe_unused]] const Term x = ctx.x(), y = ctx.y(), dy = ctx.dy(); \
    ctx.set(0, dx);                                                      \
  }

COMPLEX_GRADIENT(identity) { ctx.set(0, ctx.dy()); }
COMPLEX_GRADIENT(neg) { ctx.set(0, -ctx.dy()); }

UNARY(exp, dy* y)
UNARY(exp2, dy* y* std::numbers::ln2)
UNARY(exp10, dy* y* std::numbers::ln10)
UNARY(expm1, dy*(y + 1))
UNARY(log, dy / x)
UNARY(log2, dy / (x * std::numbers::ln2))
UNARY(log10, dy / (x * std::numbers::ln10))
UNARY(log1p, dy / (x + 1))
UNARY(square, dy*(x * 2))
UNARY(sqrt, dy * 0.5 / y)
UNARY(rsqrt, dy * -0.5 * (y * y * y))
UNARY(reciprocal, -dy*(y* y))
UNARY(abs, dy* x.op("sign"))
UNARY(sin, dy* x.op("cos"))
UNARY(cos, -dy* x.op("sin"))
UNARY(tan, dy*(1 + y * y))
UNARY(sinh, dy* x.op("cosh"))
UNARY(cosh, dy* x.op("sinh"))
UNARY(tanh, dy*(1 - y * y))
UNARY(asin, dy*(1 - x * x).op("rsqrt"))
UNARY(acos, -dy*(1 - x * x).op("rsqrt"))
UNARY(atan, dy / (1 + x * x))
UNARY(asinh, dy*(1 + x * x).op("rsqrt"))
UNARY(acosh, dy*((x - 1) * (x + 1)).op("rsqrt"))
UNARY(atanh, dy / ((1 - x) * (1 + x)))
UNARY(erf, dy*(-(x* x)).op("exp") * (2 * std::numbers::inv_sqrtpi))
#undef UNARY

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

GRADIENT(mul) {
  if (ctx.wants(0)) ctx.set(0, ctx.dy() * ctx.x(1));
  if (ctx.wants(1)) ctx.set(1, ctx.dy() * ctx.x(0));
}

GRADIENT(div) {
  if (ctx.attrs().s("rounding") != "none") return;  // constant between its steps
  const Term b = ctx.x(1), da = ctx.dy() / b;
  ctx.set(0, da);
  if (ctx.wants(1)) ctx.set(1, -da * ctx.y());
}

static void modulo(GradientContext& ctx, const char* rounding) {
  ctx.set(0, ctx.dy());
  if (!ctx.wants(1)) return;
  const Term quotient = ctx.add("div", {ctx.x(0), ctx.x(1)}, {{"rounding", rounding}});
  ctx.set(1, -ctx.dy() * quotient);
}
GRADIENT(mod) { modulo(ctx, "trunc"); }
GRADIENT(floor_mod) { modulo(ctx, "floor"); }

GRADIENT(pow) {
  const Term a = ctx.x(0), b = ctx.x(1), dy = ctx.dy();
  // A power of 0 is constant, also where a is 0; and 0 to a power above 0 stays 0.
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

}  // namespace anymps
