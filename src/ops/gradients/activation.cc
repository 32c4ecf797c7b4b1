// SPDX-License-Identifier: Apache-2.0
// Gradients of activation functions. At a kink the gradient is that of the left side, as in
// PyTorch: relu'(0) is 0.
#include <cmath>
#include <numbers>

#include "ops/gradient.h"

namespace anymps {

GRADIENT(relu) { ctx.set(0, where(ctx.x() > 0, ctx.dy(), 0)); }

GRADIENT(leaky_relu) {
  ctx.set(0, where(ctx.x() > 0, ctx.dy(), ctx.dy() * ctx.attrs().f("alpha")));
}

GRADIENT(prelu) {
  const Term x = ctx.x(), dy = ctx.dy(), positive = x > 0;
  if (ctx.wants(0)) ctx.set(0, where(positive, dy, dy * ctx.x(1)));
  if (ctx.wants(1)) ctx.set(1, where(positive, 0, dy * x));
}

GRADIENT(elu) {
  ctx.set(0, where(ctx.x() > 0, ctx.dy(), ctx.dy() * (ctx.y() + ctx.attrs().f("alpha"))));
}

GRADIENT(selu) {
  const double alpha = ctx.attrs().f("alpha"), gamma = ctx.attrs().f("gamma");
  ctx.set(0, where(ctx.x() > 0, ctx.dy() * gamma, ctx.dy() * (ctx.y() + alpha * gamma)));
}

GRADIENT(celu) {
  const double alpha = ctx.attrs().f("alpha");
  ctx.set(0, where(ctx.x() > 0, ctx.dy(), ctx.dy() * (ctx.y() / alpha + 1)));
}

GRADIENT(gelu) {
  const Term x = ctx.x();
  if (ctx.attrs().s("approximate") == "none") {
    // The part of the normal distribution below x. Where 1 + erf(…) is a difference of numbers near
    // 1, gelu(x) / x is the same without it; no division by zero elsewhere, for second gradients.
    const Term tail = x < -1;
    const Term below = where(tail, ctx.y() / where(tail, x, -1),
                             (x * (1 / std::numbers::sqrt2)).op("erf") * 0.5 + 0.5);
    const Term density =
        (x * x * -0.5).op("exp") * (0.5 * std::numbers::sqrt2 * std::numbers::inv_sqrtpi);
    ctx.set(0, ctx.dy() * (below + x * density));
    return;
  }
  const double scale = std::numbers::sqrt2 * std::numbers::inv_sqrtpi, cubic = 0.044715;
  const Term square = x * x;
  // (1 + tanh(z)) / 2 as sigmoid(2 z), which loses no tail.
  const Term s = (x * (square * cubic + 1) * (2 * scale)).op("sigmoid");
  const Term slope = (square * (3 * cubic) + 1) * (2 * scale);
  ctx.set(0, ctx.dy() * (s * (x * (1 - s) * slope + 1)));
}

GRADIENT(silu) {
  const Term s = ctx.x().op("sigmoid");
  ctx.set(0, ctx.dy() * (s * (ctx.x() * (1 - s) + 1)));
}

GRADIENT(mish) {
  const Term x = ctx.x(), t = x.op("softplus").op("tanh");
  ctx.set(0, ctx.dy() * (t + x * x.op("sigmoid") * (1 - t * t)));
}

GRADIENT(softplus) { ctx.set(0, ctx.dy() * ctx.x().op("sigmoid")); }

GRADIENT(softsign) {
  const Term below = ctx.x().op("abs") + 1;
  ctx.set(0, ctx.dy() / (below * below));
}

GRADIENT(sigmoid) { ctx.set(0, ctx.dy() * (ctx.y() * (1 - ctx.y()))); }

GRADIENT(hard_sigmoid) {
  const Term inside = both(ctx.y() > 0, ctx.y() < 1);
  ctx.set(0, where(inside, ctx.dy() * ctx.attrs().f("alpha"), 0));
}

GRADIENT(hard_swish) {
  const Term x = ctx.x(), dy = ctx.dy();
  ctx.set(0, where(x > -3, where(x < 3, dy * (x * (1.0 / 3) + 0.5), dy), 0));
}

GRADIENT(thresholded_relu) { ctx.set(0, where(ctx.x() > ctx.attrs().f("alpha"), ctx.dy(), 0)); }

GRADIENT(softmax) {
  const Term y = ctx.y(), scaled = ctx.dy() * y;
  ctx.set(0, scaled - y * ctx.sum(scaled, {ctx.attrs().i("axis")}));
}

GRADIENT(log_softmax) {
  const Term dy = ctx.dy();
  ctx.set(0, dy - ctx.y().op("exp") * ctx.sum(dy, {ctx.attrs().i("axis")}));
}

}  // namespace anymps
