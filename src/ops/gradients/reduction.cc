// SPDX-License-Identifier: Apache-2.0
// Gradients of reductions and running sums. Equal extrema share the gradient evenly.
#include <numeric>

#include "ops/gradients/axes.h"
#include "ops/gradients/conjugate.h"

namespace anymps {

namespace {

// A reduced tensor with its axes back, of extent 1.
Term kept(GradientContext& ctx, const Term& reduced) {
  if (ctx.attrs().b("keep_dims")) return reduced;
  const std::vector<int64_t> axes = reduced_axes(ctx);
  return axes.empty() ? reduced : reduced.op("unsqueeze", {{"axes", axes}});
}

Term spread(GradientContext& ctx, const Term& kept) { return ctx.expand_like(kept, ctx.x()); }

void extremum(GradientContext& ctx) {
  const Term mask = (ctx.x() == kept(ctx, ctx.y())).op("cast", {{"dtype", ctx.x().dtype()}});
  ctx.set(0, mask * (kept(ctx, ctx.dy()) / ctx.sum(mask, reduced_axes(ctx))));
}

}  // namespace

COMPLEX_GRADIENT(reduce_sum) { ctx.set(0, spread(ctx, kept(ctx, ctx.dy()))); }

COMPLEX_GRADIENT(reduce_mean) {
  ctx.set(0, spread(ctx, kept(ctx, ctx.dy()) / ctx.ratio(ctx.x(), ctx.y())));
}

GRADIENT(reduce_max) { extremum(ctx); }
GRADIENT(reduce_min) { extremum(ctx); }

// The product of the others, which is not y / x where an element is 0.
COMPLEX_GRADIENT(reduce_prod) {
  const Term x = ctx.x(), zero = x == 0.0, filled = where(zero, 1, x);
  const std::vector<int64_t> axes = reduced_axes(ctx);
  const Term zeros = ctx.sum(zero.op("cast", {{"dtype", x.dtype()}}), axes);
  const Term product =
      axes.empty() ? filled : filled.op("reduce_prod", {{"axes", axes}, {"keep_dims", true}});
  const Term others =
      where(zero, where(zeros == 1.0, product, 0), where(zeros == 0.0, product / filled, 0));
  ctx.set(0, kept(ctx, ctx.dy()) * conjugated(others));
}

GRADIENT(reduce_l1) { ctx.set(0, kept(ctx, ctx.dy()) * ctx.x().op("sign")); }

GRADIENT(reduce_l2) {
  const Term y = kept(ctx, ctx.y()), dy = kept(ctx, ctx.dy());
  ctx.set(0, ctx.x() * where(y == 0.0, 0, dy / where(y == 0.0, 1, y)));
}

GRADIENT(reduce_sum_square) { ctx.set(0, ctx.x() * (kept(ctx, ctx.dy()) * 2)); }

GRADIENT(reduce_log_sum) {
  ctx.set(0, spread(ctx, kept(ctx, ctx.dy()) * (-kept(ctx, ctx.y())).op("exp")));
}

GRADIENT(reduce_log_sum_exp) {
  ctx.set(0, kept(ctx, ctx.dy()) * (ctx.x() - kept(ctx, ctx.y())).op("exp"));
}

COMPLEX_GRADIENT(sum_to) { ctx.set(0, ctx.expand_like(ctx.dy(), ctx.x())); }

ZERO_GRADIENT(reduce_and, "gives bool");
ZERO_GRADIENT(reduce_or, "gives bool");
ZERO_GRADIENT(arg_max, "gives places");
ZERO_GRADIENT(arg_min, "gives places");

}  // namespace anymps
