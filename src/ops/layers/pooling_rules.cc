// SPDX-License-Identifier: Apache-2.0
// Gradients of pooling, which are separate ops.
#include "ops/gradient_parts.h"

namespace anymps {

namespace {

void by_op(GradientContext& ctx, const char* op) {
  ctx.set(0, ctx.add(op, {ctx.dy(), ctx.x()}, shared_attrs(ctx, op)));
}

// Elements of value, counted in row-major order; 0 for the place -1.
Term picked(GradientContext& ctx, const Term& value, const Term& places) {
  const Term none = places < 0, flat = ctx.reshape(value, {-1});
  return where(none, 0, ctx.add("gather", {flat, where(none, 0, places)}, {{"axis", 0}}));
}

// The same for places that are counted within the last axes, as max_pool's indices global_2d are.
Term picked_within(GradientContext& ctx, const Term& value, const Term& places, int64_t axes) {
  Extents shape;
  for (int64_t i = 0; i + axes < value.rank(); ++i) shape.push_back(ctx.extent(value, i));
  shape.emplace_back(-1);
  const int64_t axis = value.rank() - axes;
  const Term none = places < 0;
  const Term lines = ctx.reshape(where(none, 0, places), shape);
  const Term found =
      ctx.add("gather_along_axis", {ctx.reshape(value, shape), lines}, {{"axis", axis}});
  return where(none, 0, ctx.reshape_like(found, places));
}

}  // namespace

GRADIENT(avg_pool) { by_op(ctx, "avg_pool_gradient"); }
GRADIENT(lp_pool) { by_op(ctx, "lp_pool_gradient"); }
GRADIENT(max_pool) { by_op(ctx, "max_pool_gradient"); }

GRADIENT(avg_pool_gradient) { ctx.set(0, ctx.dy().op("avg_pool", shared_attrs(ctx, "avg_pool"))); }

GRADIENT(max_pool_gradient) {
  if (!ctx.wants(0)) return;  // where the maxima lie does not move
  if (ctx.dy().type().static_shape() && element_count(to_shape(ctx.dy().shape())) == 0)
    return ctx.set(0, ctx.fill_like(ctx.x(), 0));
  const Term places = ctx.add_all("max_pool", {ctx.x(1)}, shared_attrs(ctx, "max_pool"), 2)[1];
  ctx.set(0, picked(ctx, ctx.dy(), places));
}

GRADIENT(max_unpool) {
  const Term x = ctx.x(), dy = ctx.dy();
  if (ctx.attrs().s("reduce") == "add") {
    const std::string& mode = ctx.attrs().s("indices");
    if (mode.starts_with("global"))
      return ctx.set(0, picked_within(ctx, dy, ctx.x(1), mode.at(mode.find('_') + 1) - '0'));
    if (mode != "tensor")
      ctx.refuse("only sums over places in the tensor or in its last axes have a gradient");
    return ctx.set(0, picked(ctx, dy, ctx.x(1)));
  }
  // Numbers 1, 2, … put where the elements go tell which of them stayed; 0 is none.
  const Term one = ctx.scalar(1, DType::kF64);
  const Term count = x.op("size").op("cast", {{"dtype", DType::kF64}});
  std::vector<Term> inputs{ctx.reshape_like(ctx.add("range", {one, count + 1, one}), x), ctx.x(1)};
  if (ctx.has(2)) inputs.push_back(ctx.x(2));
  const Term winners =
      ctx.add("max_unpool", inputs, ctx.attrs().named()).op("cast", {{"dtype", DType::kI64}});
  const Term room =
      ctx.add("fill", {ctx.reshape(x.op("size") + 1, {1}), ctx.scalar(0, dy.dtype())});
  const Term sums = ctx.add("scatter", {ctx.reshape(dy, {-1}), ctx.reshape(winners, {-1}), room},
                            {{"axis", 0}, {"mode", "add"}});
  const Term own =
      sums.op("slice", {{"starts", Ints{1}}, {"ends", Ints{INT64_MAX}}, {"axes", Ints{0}}});
  ctx.set(0, ctx.reshape_like(own, x));
}

NO_GRADIENT(lp_pool_gradient, "norms of windows have no second gradient");

}  // namespace anymps
