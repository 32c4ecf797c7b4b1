// SPDX-License-Identifier: Apache-2.0
// Gradients of complex numbers and their parts, and second gradients of activations.
#include "ops/gradients/axes.h"

namespace anymps {

namespace {

Term complex_of(GradientContext& ctx, const Term& real, const Term& imaginary) {
  return ctx.add("make_complex", {real, imaginary});
}
Term zero(GradientContext& ctx) { return ctx.scalar(0, DType::kF32); }

}  // namespace

COMPLEX_GRADIENT(real_part) { ctx.set(0, complex_of(ctx, ctx.dy(), zero(ctx))); }
COMPLEX_GRADIENT(imaginary_part) { ctx.set(0, complex_of(ctx, zero(ctx), ctx.dy())); }
COMPLEX_GRADIENT(conjugate) { ctx.set(0, ctx.dy().op("conjugate")); }

COMPLEX_GRADIENT(absolute_square) {
  ctx.set(0, ctx.x() * complex_of(ctx, ctx.dy() * 2, zero(ctx)));
}

// 0 at 0.
COMPLEX_GRADIENT(complex_abs) {
  const Term scale = ctx.add("div_no_nan", {ctx.dy(), ctx.y()});
  ctx.set(0, ctx.x() * complex_of(ctx, scale, zero(ctx)));
}

COMPLEX_GRADIENT(make_complex) {
  ctx.set(0, ctx.dy().op("real_part"));
  ctx.set(1, ctx.dy().op("imaginary_part"));
}

COMPLEX_GRADIENT(planar) {
  const auto parts = ctx.add_all("split", {ctx.dy()}, {{"axis", -1}}, 2);
  ctx.set(0, complex_of(ctx, parts[0], parts[1]));
}

GRADIENT(relu_gradient) {
  ctx.set(0, ctx.add("relu_gradient", {ctx.dy(), ctx.x(1)}));
  ctx.set(1, ctx.fill_like(ctx.x(1), 0));
}

GRADIENT(sigmoid_gradient) {
  const Term s = ctx.x(1).op("sigmoid");
  ctx.set(0, ctx.add("sigmoid_gradient", {ctx.dy(), ctx.x(1)}));
  ctx.set(1, ctx.dy() * ctx.x(0) * s * (1 - s) * (1 - s * 2));
}

GRADIENT(leaky_relu_gradient) {
  const Term below = ctx.x(1) < 0, dy = ctx.dy();
  ctx.set(0, where(below, dy * ctx.x(2), dy));
  ctx.set(1, ctx.fill_like(ctx.x(1), 0));
  ctx.set(2, where(below, dy * ctx.x(0), 0));
}

GRADIENT(softmax_gradient) {
  const int64_t axis = ctx.attrs().i("axis");
  const Term s = ctx.x(1).op("softmax", {{"axis", axis}});
  const Term mean = ctx.sum(ctx.x(0) * s, {axis < 0 ? axis + ctx.x().rank() : axis});
  ctx.through({s * (ctx.x(0) - mean)});
}

}  // namespace anymps
