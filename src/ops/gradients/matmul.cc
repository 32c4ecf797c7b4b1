// SPDX-License-Identifier: Apache-2.0
// Gradients of matrix products and of attention.
#include <cmath>

#include "ops/gradients/axes.h"
#include "ops/gradients/conjugate.h"
#include "ops/gradients/fused_activation.h"

namespace anymps {

namespace {

Term product(GradientContext& ctx, const Term& a, const Term& b, bool transpose_a, bool transpose_b,
             double alpha) {
  return ctx.add("matmul", {a, b},
                 {{"transpose_a", transpose_a}, {"transpose_b", transpose_b}, {"alpha", alpha}});
}

// a is [batch…, rows, K] and b one matrix: the batch may be part of the rows.
Term as_matrix(GradientContext& ctx, const Term& value) {
  if (value.rank() == 2) return value;
  return ctx.reshape(value, {-1, ctx.extent(value, value.rank() - 1)});
}

bool has_elements(const Term& value) {
  for (const Dim& extent : value.shape())
    if (!extent.known() || extent.is(0)) return false;
  return true;
}

}  // namespace

COMPLEX_GRADIENT(matmul) {
  if (through_activation(ctx, "act_alpha", "act_beta")) return;
  const Term dy = ctx.dy();
  ctx.set(2, dy);
  ctx.set(3, dy);
  if (!ctx.wants(0) && !ctx.wants(1)) return;
  const bool row = ctx.x(0).rank() == 1, column = ctx.x(1).rank() == 1;
  const bool ta = ctx.attrs().b("transpose_a") && !row,
             tb = ctx.attrs().b("transpose_b") && !column;
  const double alpha = ctx.attrs().f("alpha");
  // Vectors as matrices: a row on the left, a column on the right.
  using Ints = std::vector<int64_t>;
  const Term left_factor = conjugated(ctx.x(0)), right_factor = conjugated(ctx.x(1));
  const Term a = row ? left_factor.op("unsqueeze", {{"axes", Ints{0}}}) : left_factor;
  const Term b = column ? right_factor.op("unsqueeze", {{"axes", Ints{1}}}) : right_factor;
  Term g = dy;
  if (column) g = g.op("unsqueeze", {{"axes", Ints{-1}}});
  if (row) g = g.op("unsqueeze", {{"axes", Ints{-2}}});
  if (ctx.wants(0)) {
    const Term da =
        ta ? product(ctx, b, g, tb, true, alpha) : product(ctx, g, b, false, !tb, alpha);
    ctx.set(0, row ? ctx.reduce_to_shape_of(da, a).op("squeeze", {{"axes", Ints{0}}}) : da);
  }
  if (ctx.wants(1)) {
    const bool one_matrix =
        !ta && b.rank() == 2 && a.rank() > 2 && has_elements(a) && has_elements(g);
    const Term left = one_matrix ? as_matrix(ctx, a) : a,
               right = one_matrix ? as_matrix(ctx, g) : g;
    const Term db = tb ? product(ctx, right, left, true, ta, alpha)
                       : product(ctx, left, right, !ta, false, alpha);
    ctx.set(1, column ? ctx.reduce_to_shape_of(db, b).op("squeeze", {{"axes", Ints{1}}}) : db);
  }
}

GRADIENT(sdpa) {
  const Term q = ctx.x(0), k = ctx.x(1), v = ctx.x(2), dy = ctx.dy();
  const Dim& depth = q.shape()[3];
  double scale = ctx.attrs().f("scale");
  if (scale == 0) {
    if (!depth.known()) ctx.refuse("the depth of the queries is not known");
    scale = 1 / std::sqrt(static_cast<double>(depth.value()));
  }
  const Term never = ctx.scalar(-INFINITY, q.dtype());
  Term scores = product(ctx, q, k, false, true, scale);
  if (ctx.has(3)) {
    const Term mask = ctx.x(3);
    if (mask.dtype() == DType::kBool)
      scores = where(mask, scores, never);
    else
      scores =
          scores + (mask.dtype() == q.dtype() ? mask : mask.op("cast", {{"dtype", q.dtype()}}));
  }
  if (ctx.attrs().b("causal")) {
    const Term all = ctx.fill_like(scores, 1) > 0;
    scores = where(all.op("trilu", {{"upper", false}}), scores, never);
  }
  // A query that keeps no key gives 0.
  const Term none = scores.op("reduce_max", {{"axes", std::vector<int64_t>{-1}},
                                             {"keep_dims", true}}) == -INFINITY;
  const Term p = where(none, 0, where(none, 0, scores).op("softmax", {{"axis", -1}}));
  if (ctx.wants(2)) ctx.set(2, product(ctx, p, dy, true, false, 1));
  const Term dp = product(ctx, dy, v, false, true, 1) * p;
  const Term ds = dp - p * ctx.sum(dp, {-1});
  if (ctx.wants(0)) ctx.set(0, product(ctx, ds, k, false, false, scale));
  if (ctx.wants(1)) ctx.set(1, product(ctx, ds, q, true, false, scale));
  if (ctx.wants(3)) {
    const Term dmask = ctx.reduce_to_shape_of(ds, ctx.x(3));
    ctx.set(3, dmask.dtype() == ctx.x(3).dtype() ? dmask
                                                 : dmask.op("cast", {{"dtype", ctx.x(3).dtype()}}));
  }
}

// The walk back over the places is an op of its own.
GRADIENT(linear_attention) {
  std::vector<Term> inputs;
  for (size_t i = 0; i < 6; ++i) inputs.push_back(ctx.has(i) ? ctx.x(i) : Term());
  inputs.push_back(ctx.dy(0));
  inputs.push_back(ctx.output_count() > 1 ? ctx.dy(1) : Term());
  // Without a past the state has the dtype of the queries.
  const std::vector<Term> results =
      ctx.add_all("linear_attention_gradient", inputs, ctx.attrs().named(), 6);
  for (size_t i = 0; i < 6; ++i)
    if (ctx.has(i)) ctx.set(i, results[i]);
}

}  // namespace anymps
