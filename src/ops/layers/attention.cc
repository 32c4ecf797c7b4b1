// SPDX-License-Identifier: Apache-2.0
// Attention as one op, so that drivers need not hold the matrix of scores.
#include <cmath>

#include "ops/expect.h"
#include "ops/gradient_parts.h"

namespace anymps {

namespace {

void infer_sdpa(InferContext& ctx) {
  for (size_t i = 0; i < 3; ++i) expect_rank(ctx, i, 4, 4);
  const Dims &q = ctx.shape(0), &k = ctx.shape(1), &v = ctx.shape(2);
  const Dim batch = known_of(q[0], known_of(k[0], v[0])),
            heads = known_of(q[1], known_of(k[1], v[1]));
  const Dim keys = known_of(k[2], v[2]);
  expect_shape(ctx, 0, {batch, heads, q[2], q[3]});
  expect_shape(ctx, 1, {batch, heads, keys, q[3]});
  expect_shape(ctx, 2, {batch, heads, keys, v[3]});
  expect_broadcast(ctx, 3, {batch, heads, q[2], keys});
  ctx.set(0, {batch, heads, q[2], v[3]});
}

double sdpa_cost(const Attrs&, const std::vector<Shape>& in, const std::vector<Shape>&) {
  const Shape &q = in[0], &v = in[2];
  const double scores = static_cast<double>(q[0]) * static_cast<double>(q[1]) *
                        static_cast<double>(q[2]) * static_cast<double>(v[2]);
  return scores * (2 * static_cast<double>(q[3]) + 2 * static_cast<double>(v[3]) + 5);
}

}  // namespace

OP(sdpa)
    .doc(
        "Scaled dot-product attention. A float mask is added to the scores, a bool mask keeps "
        "those "
        "where it is true; causal keeps the key t for the query s if t <= s (counted from the "
        "first of each). A query that keeps no key (every score is -infinity) gives 0.")
    .formula("y = softmax(scale * q @ k^T + mask) @ v")
    .mps("scaledDotProductAttentionWithQueryTensor:keyTensor:valueTensor:maskTensor:scale:name:")
    .mps("scaledDotProductAttentionWithQueryTensor:keyTensor:valueTensor:scale:name:")
    .input("q", kFloat, "T", "[B, H, S, D]")
    .input("k", kFloat, "T", "[B, H, T, D]")
    .input("v", kFloat, "T", "[B, H, T, Dv]")
    .optional("mask", kFloat | kBoolean, "M", "broadcasts to [B, H, S, T]")
    .output("y", "T", "[B, H, S, Dv]")
    .attr("scale", 0.0, "0: 1/sqrt(D)")
    .attr("causal", false)
    .facts(kProduct)
    .infer(infer_sdpa)
    .cost(sdpa_cost)
    .tolerance({.f32 = 2e-5, .f16 = 4e-3, .bf16 = 3e-2, .f64 = 1e-10})
    .sample({"plain", {{2, 3, 7, 8}, {2, 3, 7, 8}, {2, 3, 7, 8}}, {}})
    .sample({"causal", {{1, 2, 9, 8}, {1, 2, 9, 8}, {1, 2, 9, 8}}, {{"causal", true}}})
    .sample({"causal more keys", {{1, 2, 5, 8}, {1, 2, 9, 8}, {1, 2, 9, 8}}, {{"causal", true}}})
    .sample({"causal more queries", {{1, 2, 9, 8}, {1, 2, 5, 8}, {1, 2, 5, 8}}, {{"causal", true}}})
    .sample({"mask", {{2, 3, 5, 8}, {2, 3, 6, 8}, {2, 3, 6, 8}, {2, 3, 5, 6}}, {}})
    .sample({"mask of keys", {{2, 3, 5, 8}, {2, 3, 6, 8}, {2, 3, 6, 8}, {2, 1, 1, 6}}, {}})
    .sample({"mask of rank 2", {{2, 3, 5, 8}, {2, 3, 6, 8}, {2, 3, 6, 8}, {5, 6}}, {}})
    .sample({"mask and causal",
             {{1, 2, 6, 8}, {1, 2, 6, 8}, {1, 2, 6, 8}, {1, 1, 6, 6}},
             {{"causal", true}}})
    .sample({"scale", {{1, 2, 6, 4}, {1, 2, 5, 4}, {1, 2, 5, 4}}, {{"scale", 0.25}}})
    .sample({"wide values", {{1, 2, 6, 4}, {1, 2, 5, 4}, {1, 2, 5, 11}}, {}})
    .sample({"one query", {{1, 4, 1, 64}, {1, 4, 33, 64}, {1, 4, 33, 64}}, {}})
    .sample({"one key", {{1, 2, 3, 8}, {1, 2, 1, 8}, {1, 2, 1, 8}}, {}})
    .sample({"long", {{1, 2, 48, 32}, {1, 2, 80, 32}, {1, 2, 80, 32}}, {}})
    .sample({"no keys", {{1, 2, 3, 8}, {1, 2, 0, 8}, {1, 2, 0, 8}}, {}})
    .sample({"empty batch", {{0, 2, 3, 8}, {0, 2, 4, 8}, {0, 2, 4, 8}}, {}});

GRADIENT(sdpa) {
  const Term q = ctx.x(0), k = ctx.x(1), v = ctx.x(2), dy = ctx.dy();
  const Dim& depth = q.shape()[3];
  double scale = ctx.attrs().f("scale");
  if (scale == 0) {
    if (!depth.known()) ctx.refuse("the depth of the queries is not known");
    scale = 1 / std::sqrt(static_cast<double>(depth.value()));
  }
  const Term never = ctx.scalar(-INFINITY, q.dtype());
  Term scores = matrix_product(q, k, false, true, scale);
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
  const Term none = scores.op("reduce_max", {{"axes", Ints{-1}}, {"keep_dims", true}}) == -INFINITY;
  const Term p = where(none, 0, where(none, 0, scores).op("softmax", {{"axis", -1}}));
  if (ctx.wants(2)) ctx.set(2, matrix_product(p, dy, true, false, 1));
  const Term dp = matrix_product(dy, v, false, true, 1) * p;
  const Term ds = dp - p * ctx.sum(dp, {-1});
  if (ctx.wants(0)) ctx.set(0, matrix_product(ds, k, false, false, scale));
  if (ctx.wants(1)) ctx.set(1, matrix_product(ds, q, true, false, scale));
  if (ctx.wants(3)) {
    const Term dmask = ctx.reduce_to_shape_of(ds, ctx.x(3));
    ctx.set(3, dmask.dtype() == ctx.x(3).dtype() ? dmask
                                                 : dmask.op("cast", {{"dtype", ctx.x(3).dtype()}}));
  }
}

}  // namespace anymps
