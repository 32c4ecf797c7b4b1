// SPDX-License-Identifier: Apache-2.0
// Bessel functions of orders 0 and 1, modified ones with and without their exponentials, and Airy's
// function.
#include "ops/elementwise/elementwise_record.h"
#include "ops/gradient.h"

namespace anymps {

#define BESSEL(name, text, math) UNARY(name, kFloat, text, math).facts(kSteep)

BESSEL(bessel_j0, "Bessel's function of the first kind and order 0.", "y = J0(x)").domain(-20, 20);
BESSEL(bessel_j1, "Bessel's function of the first kind and order 1.", "y = J1(x)").domain(-20, 20);
BESSEL(bessel_y0,
       "Bessel's function of the second kind and order 0: minus infinity at 0, NaN below.",
       "y = Y0(x)")
    .domain(0.2, 20);
BESSEL(bessel_y1,
       "Bessel's function of the second kind and order 1: minus infinity at 0, NaN below.",
       "y = Y1(x)")
    .domain(0.2, 20);
BESSEL(spherical_bessel_j0, "The spherical Bessel function of order 0, 1 at 0.", "y = sin(x) / x")
    .domain(-20, 20);
BESSEL(i0, "The modified Bessel function of the first kind and order 0.", "y = I0(x)")
    .aten("i0")
    .domain(-9, 9);
BESSEL(i0e, "i0 without its growth.", "y = exp(-|x|) * I0(x)").domain(-20, 20);
BESSEL(i1, "The modified Bessel function of the first kind and order 1.", "y = I1(x)")
    .domain(-9, 9);
BESSEL(i1e, "i1 without its growth.", "y = exp(-|x|) * I1(x)").domain(-20, 20);
BESSEL(modified_bessel_k0,
       "The modified Bessel function of the second kind and order 0: infinite at 0, NaN below.",
       "y = K0(x)")
    .domain(0.1, 6);
BESSEL(modified_bessel_k1,
       "The modified Bessel function of the second kind and order 1: infinite at 0, NaN below.",
       "y = K1(x)")
    .domain(0.1, 6);
BESSEL(scaled_modified_bessel_k0, "modified_bessel_k0 without its decay.", "y = exp(x) * K0(x)")
    .domain(0.1, 6);
BESSEL(scaled_modified_bessel_k1, "modified_bessel_k1 without its decay.", "y = exp(x) * K1(x)")
    .domain(0.1, 6);
BESSEL(airy_ai, "Airy's function Ai, the solution of y'' = x y that vanishes to the right.",
       "y = Ai(x)")
    .domain(-8, 6);

// y / x, which goes to `limit` at 0.
static Term over_x(const Term& y, const Term& x, double limit) {
  const Term zero = x == 0.0;
  return where(zero, limit, y / where(zero, 1, x));
}

GRADIENT(bessel_j0) { ctx.set(0, -(ctx.dy() * ctx.x().op("bessel_j1"))); }
GRADIENT(bessel_j1) {
  ctx.set(0, ctx.dy() * (ctx.x().op("bessel_j0") - over_x(ctx.y(), ctx.x(), 0.5)));
}
GRADIENT(bessel_y0) { ctx.set(0, -(ctx.dy() * ctx.x().op("bessel_y1"))); }
GRADIENT(bessel_y1) { ctx.set(0, ctx.dy() * (ctx.x().op("bessel_y0") - ctx.y() / ctx.x())); }
GRADIENT(spherical_bessel_j0) {
  // Near 0 the difference of cosine and quotient is lost: the series of it instead.
  const Term x = ctx.x(), near = x.op("abs") < 0.3, far = where(near, 1, x), square = x * x;
  const Term series =
      x * (((square * (1.0 / 45360) - 1.0 / 840) * square + 1.0 / 30) * square - 1.0 / 3);
  const Term slope = (far.op("cos") - far.op("spherical_bessel_j0")) / far;
  ctx.set(0, ctx.dy() * where(near, series, slope));
}
GRADIENT(i0) { ctx.set(0, ctx.dy() * ctx.x().op("i1")); }
GRADIENT(i1) { ctx.set(0, ctx.dy() * (ctx.x().op("i0") - over_x(ctx.y(), ctx.x(), 0.5))); }
GRADIENT(i0e) {
  const Term x = ctx.x();
  ctx.set(0, ctx.dy() * (x.op("i1e") - x.op("sign") * ctx.y()));
}
GRADIENT(i1e) {
  const Term x = ctx.x(), y = ctx.y();
  ctx.set(0, ctx.dy() * (x.op("i0e") - x.op("sign") * y - over_x(y, x, 0.5)));
}
GRADIENT(modified_bessel_k0) { ctx.set(0, -(ctx.dy() * ctx.x().op("modified_bessel_k1"))); }
GRADIENT(modified_bessel_k1) {
  ctx.set(0, -ctx.dy() * (ctx.x().op("modified_bessel_k0") + ctx.y() / ctx.x()));
}
GRADIENT(scaled_modified_bessel_k0) {
  ctx.set(0, ctx.dy() * (ctx.y() - ctx.x().op("scaled_modified_bessel_k1")));
}
GRADIENT(scaled_modified_bessel_k1) {
  const Term x = ctx.x(), y = ctx.y();
  ctx.set(0, ctx.dy() * (y - x.op("scaled_modified_bessel_k0") - y / x));
}
NO_GRADIENT(airy_ai, "there is no op for the derivative of Airy's function");

}  // namespace anymps
