// SPDX-License-Identifier: Apache-2.0
// Gradients of ops that make a tensor from a few numbers.
#include "ops/gradient.h"
#include "ops/gradients/axes.h"

namespace anymps {

static Term total(GradientContext& ctx, const Term& value) {
  return ctx.sum(value, axes_from(0, value.rank()), false);
}

COMPLEX_GRADIENT(fill) { ctx.set(1, ctx.reshape_like(total(ctx, ctx.dy()), ctx.x(1))); }

ZERO_GRADIENT(random_mersenne, "its numbers come from a seed");

GRADIENT(range) {  // y[i] = start + i * delta; the limit only counts
  const Term dy = ctx.dy();
  if (ctx.wants(0)) ctx.set(0, ctx.reshape_like(total(ctx, dy), ctx.x(0)));
  if (!ctx.wants(2)) return;
  const Term places = ctx.add("cumsum", {ctx.fill_like(dy, 1)}, {{"axis", 0}, {"exclusive", true}});
  ctx.set(2, ctx.reshape_like(total(ctx, dy * places), ctx.x(2)));
}

COMPLEX_GRADIENT(one_hot) {
  const Term dy = ctx.dy();
  const Term flags = ctx.add(
      "concat", {ctx.scalar(0, dy.dtype()).op("unsqueeze", {{"axes", std::vector<int64_t>{0}}}),
                 ctx.scalar(1, dy.dtype()).op("unsqueeze", {{"axes", std::vector<int64_t>{0}}})});
  const Term on =
      ctx.add("one_hot", {ctx.x(0), ctx.x(1), flags}, {{"axis", ctx.attrs().i("axis")}});
  const Term picked = total(ctx, dy * on), rest = total(ctx, dy * (1 - on));
  ctx.set(2, ctx.add("stack", {rest, picked}, {{"axis", 0}}));
}

}  // namespace anymps
