// SPDX-License-Identifier: Apache-2.0
// Gradients of elementwise arithmetic. Where two inputs are equal, min and max give half of the
// gradient to each, as PyTorch does.
#include <numbers>

#include "ops/gradients/conjugate.h"

namespace anymps {

#define UNARY(name, dx)                                                  \
  GRADIENT(name) {                                                       \
    [[maybe_unused]] const Term x = ctx.x(), y = ctx.y(), dy = ctx.dy(); \
    ctx.set(0, dx);                                                      \
  }

// Of a function that complex numbers have too, by its slope.
#define HOLOMORPHIC(name, slope)                          \
  COMPLEX_GRADIENT(name) {                                \
    [[maybe_unused]] const Term x = ctx.x(), y = ctx.y(); \
    ctx.set(0, ctx.dy() * conjugated(slope));             \
  }

COMPLEX_GRADIENT(identity) { ctx.set(0, ctx.dy()); }
COMPLEX_GRADIENT(neg) { ctx.set(0, -ctx.dy()); }

UNARY(exp2, dy* y* std::numbers::ln2)
UNARY(exp10, dy* y* std::numbers::ln10)
UNARY(expm1, dy*(y + 1))
UNARY(log2, dy / (x * std::numbers::ln2))
UNARY(log10, dy / (x * std::numbers::ln10))
UNARY(log1p, dy / (x + 1))
UNARY(abs, dy* x.op("sign"))
UNARY(asin, dy*(1 - x * x).op("rsqrt"))
UNARY(acos, -dy*(1 - x * x).op("rsqrt"))
UNARY(atan, dy / (1 + x * x))
UNARY(asinh, dy*(1 + x * x).op("rsqrt"))
UNARY(acosh, dy*((x - 1) * (x + 1)).op("rsqrt"))
UNARY(atanh, dy / ((1 - x) * (1 + x)))
UNARY(erf, dy*(-(x* x)).op("exp") * (2 * std::numbers::inv_sqrtpi))
#undef UNARY

HOLOMORPHIC(exp, y)
HOLOMORPHIC(square, x * 2)
HOLOMORPHIC(sqrt, 0.5 / y)
HOLOMORPHIC(rsqrt, y* y* y * -0.5)
HOLOMORPHIC(reciprocal, -(y* y))
HOLOMORPHIC(sin, x.op("cos"))
HOLOMORPHIC(cos, -x.op("sin"))
HOLOMORPHIC(tan, 1 + y * y)
HOLOMORPHIC(sinh, x.op("cosh"))
HOLOMORPHIC(cosh, x.op("sinh"))
HOLOMORPHIC(tanh, 1 - y * y)
#undef HOLOMORPHIC
COMPLEX_GRADIENT(log) { ctx.set(0, ctx.dy() / conjugated(ctx.x())); }

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
  if (dy.dtype() == DType::kC64) {
    if (ctx.wants(0)) ctx.set(0, dy * conjugated(b * ctx.add("pow", {a, b - 1})));
    if (ctx.wants(1)) ctx.set(1, dy * conjugated(ctx.y() * a.op("log")));
    return;
  }
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
