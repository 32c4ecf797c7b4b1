// SPDX-License-Identifier: Apache-2.0
// Gradients of ops that pick elements by index: what was picked several times gets the sum.
#include "ops/gradients/moves.h"

namespace anymps {

namespace {

Term zeros(GradientContext& ctx) { return ctx.fill_like(ctx.x(), 0); }

}  // namespace

Term move_back(GradientContext& ctx, const Term& places, const Term& dy) {
  const auto flat = [&](const Term& value) { return ctx.reshape(value, {-1}); };
  if (dy.type().static_shape() && element_count(to_shape(dy.shape())) == 0)
    return ctx.fill_like(ctx.x(), 0);
  const Term start = flat(ctx.fill_like(ctx.x(), 0));
  const Term sums =
      ctx.add("scatter", {flat(dy), flat(places), start}, {{"axis", 0}, {"mode", "add"}});
  return ctx.reshape_like(sums, ctx.x());
}

Term move_back(GradientContext& ctx) {
  const Term x = ctx.x(), count = x.op("size");
  const Term numbers =
      ctx.add("range", {ctx.scalar(0, DType::kI64), count, ctx.scalar(1, DType::kI64)});
  std::vector<Term> inputs{ctx.reshape_like(numbers, x)};
  for (size_t i = 1; i < ctx.input_count(); ++i) inputs.push_back(ctx.x(i));
  return move_back(ctx, ctx.add(ctx.op().name.c_str(), inputs, ctx.attrs().named()), ctx.dy());
}

COMPLEX_GRADIENT(gather) {
  if (ctx.attrs().i("batch_dims") != 0) return ctx.set(0, move_back(ctx));
  const Term x = ctx.x(), indices = ctx.x(1);
  const int64_t axis = axis_of(ctx);
  const int64_t picked = indices.rank();
  Extents shape;
  for (int64_t i = 0; i < axis; ++i) shape.push_back(ctx.extent(x, i));
  Term dy = ctx.dy(), list = indices;
  if (picked != 1) {
    Extent count = 1;
    if (indices.type().static_shape())
      count = element_count(to_shape(indices.shape()));
    else
      count = ctx.reshape(indices.op("size"), {1});
    shape.push_back(count);
    for (int64_t i = axis + 1; i < x.rank(); ++i) shape.push_back(ctx.extent(x, i));
    dy = ctx.reshape(dy, shape);
    list = ctx.reshape(indices, {count});
  }
  ctx.set(0, ctx.add("scatter", {dy, list, zeros(ctx)}, {{"axis", axis}, {"mode", "add"}}));
}

COMPLEX_GRADIENT(gather_nd) {
  ctx.set(0, ctx.add("scatter_nd", {ctx.dy(), ctx.x(1), zeros(ctx)},
                     {{"batch_dims", ctx.attrs().i("batch_dims")}, {"mode", "add"}}));
}

COMPLEX_GRADIENT(gather_along_axis) {
  ctx.set(0, ctx.add("scatter_along_axis", {ctx.dy(), ctx.x(1), zeros(ctx)},
                     {{"axis", ctx.attrs().i("axis")}, {"mode", "add"}}));
}

}  // namespace anymps
