// SPDX-License-Identifier: Apache-2.0
// Gradients of ops along lines of an axis: order and running sums, products and extrema.
#include "ops/gradients/axes.h"
#include "ops/gradients/conjugate.h"

namespace anymps {

namespace {

// The same op from the other end.
Term from_other_end(GradientContext& ctx, const char* op, const Term& x, int64_t axis) {
  return x.op(op, {{"axis", axis},
                   {"exclusive", ctx.attrs().b("exclusive")},
                   {"reverse", !ctx.attrs().b("reverse")}});
}

// The last place so far at which the extremum stands gets the gradient.
void running_extremum_back(GradientContext& ctx) {
  const Term x = ctx.x(), dy = ctx.dy();
  const int64_t axis = known_axis(ctx, 1, x);
  const bool reverse = ctx.attrs().b("reverse");
  const double sign = reverse ? -1 : 1, far = -0x1p40;
  const NamedAttrs run = {{"axis", axis}, {"reverse", reverse}};
  const Term places =
      ctx.add("coordinate_along_axis", {ctx.shape_of(x)}, {{"axis", axis}, {"dtype", DType::kI64}});
  const Term inclusive = x.op(ctx.op().name.c_str(), run);
  NamedAttrs last = run;
  last.emplace_back("exclusive", ctx.attrs().b("exclusive"));
  const Term found = where(x == inclusive, places * sign, far).op("cummax", last);
  const Term there = found > far / 2;
  ctx.set(0, ctx.add("scatter_along_axis",
                     {where(there, dy, 0), where(there, found * sign, 0), ctx.fill_like(x, 0)},
                     {{"axis", axis}, {"mode", "add"}}));
}

}  // namespace

COMPLEX_GRADIENT(cumsum) {
  ctx.set(0, from_other_end(ctx, "cumsum", ctx.dy(), known_axis(ctx, 1, ctx.x())));
}

// No element may be 0.
COMPLEX_GRADIENT(cumprod) {
  const Term sums =
      from_other_end(ctx, "cumsum", ctx.dy() * conjugated(ctx.y()), known_axis(ctx, 1, ctx.x()));
  ctx.set(0, sums / conjugated(ctx.x()));
}

GRADIENT(cummin) { running_extremum_back(ctx); }
GRADIENT(cummax) { running_extremum_back(ctx); }

GRADIENT(sort) {
  const int64_t axis = known_axis(ctx, 1, ctx.x());
  const Term order =
      ctx.x().op("argsort", {{"axis", axis}, {"descending", ctx.attrs().b("descending")}});
  ctx.set(0, ctx.add("scatter_along_axis", {ctx.dy(), order, ctx.fill_like(ctx.x(), 0)},
                     {{"axis", axis}}));
}

GRADIENT(top_k) {
  ctx.set(0,
          ctx.add("top_k_gradient", {ctx.dy(), ctx.x()},
                  {{"axis", known_axis(ctx, 2, ctx.x())}, {"largest", ctx.attrs().b("largest")}}));
}

GRADIENT(top_k_gradient) {
  const Term x = ctx.x(1), dy = ctx.dy();
  const int64_t axis = known_axis(ctx, 2, x);
  const Term order = x.op("argsort", {{"axis", axis}, {"descending", ctx.attrs().b("largest")}});
  const Dim k = ctx.x().shape()[static_cast<size_t>(axis)];
  if (!k.known()) ctx.refuse("k is not known");
  const Term first = order.op("slice", {{"starts", std::vector<int64_t>{0}},
                                        {"ends", std::vector<int64_t>{k.value()}},
                                        {"axes", std::vector<int64_t>{axis}}});
  ctx.set(0, ctx.add("gather_along_axis", {dy, first}, {{"axis", axis}}));
}

ZERO_GRADIENT(argsort, "gives places");

}  // namespace anymps
