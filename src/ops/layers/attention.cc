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
  if (ctx.output_count() > 1)
    ctx.set(1, ctx.dtype(0) == DType::kF64 ? DType::kF64 : DType::kF32, {batch, heads, q[2]});
}

void infer_sdpa_gradient(InferContext& ctx) {
  for (size_t i = 1; i < 4; ++i) expect_rank(ctx, i, 4, 4);
  const Dims &q = ctx.shape(1), &k = ctx.shape(2), &v = ctx.shape(3);
  expect_shape(ctx, 2, {q[0], q[1], k[2], q[3]});
  expect_shape(ctx, 3, {q[0], q[1], k[2], v[3]});
  for (const size_t i : {size_t{0}, size_t{4}}) expect_shape(ctx, i, {q[0], q[1], q[2], v[3]});
  expect_shape(ctx, 5, {q[0], q[1], q[2]});
  expect_broadcast(ctx, 6, {q[0], q[1], q[2], k[2]});
  for (size_t i = 0; i < ctx.output_count(); ++i) ctx.set(i, ctx.shape(i + 1));
}

double sdpa_cost(const Attrs&, const std::vector<Shape>& in, const std::vector<Shape>&) {
  const Shape &q = in[0], &v = in[2];
  const double scores = static_cast<double>(q[0]) * static_cast<double>(q[1]) *
                        static_cast<double>(q[2]) * static_cast<double>(v[2]);
  return scores * (2 * static_cast<double>(q[3]) + 2 * static_cast<double>(v[3]) + 5);
}

OpWriter& attention_inputs(OpWriter& op) {
  return op.input("q", kFloat, "T", "[B, H, S, D]")
      .input("k", kFloat, "T", "[B, H, T, D]")
      .input("v", kFloat, "T", "[B, H, T, Dv]");
}

OpWriter& attention_attrs(OpWriter& op) {
  return op.attr("scale", 0.0, "0: 1/sqrt(D)").attr("causal", false);
}

}  // namespace

OP(sdpa)
    .doc(
        "Scaled dot-product attention. A float mask is added to the scores, a bool mask keeps "
        "those where it is true; causal keeps the key t for the query s if t <= s (counted from "
        "the first of each). A query that keeps no key (every score is -infinity) gives 0. The "
        "logarithms of the sums of exponentials, from which the gradient starts, are an output if "
        "asked for.")
    .formula("y = softmax(scale * q @ k^T + mask) @ v")
    .mps("scaledDotProductAttentionWithQueryTensor:keyTensor:valueTensor:maskTensor:scale:name:")
    .mps("scaledDotProductAttentionWithQueryTensor:keyTensor:valueTensor:scale:name:")
    .with(attention_inputs)
    .optional("mask", kFloat | kBoolean, "M", "broadcasts to [B, H, S, T]")
    .output("y", "T", "[B, H, S, Dv]")
    .by_product("log_sum_exp", "f32", "[B, H, S]; f64 of f64")
    .with(attention_attrs)
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

OP(sdpa_gradient)
    .doc(
        "The gradients of sdpa to queries, keys and values, from its result. The logarithms of the "
        "sums are those that sdpa gave, or computed again.")
    .formula(
        "p = exp(scale * q @ k^T + mask - log_sum_exp); ds = p * (dy @ v^T - sum(dy * y)); "
        "dq = scale * ds @ k, dk = scale * ds^T @ q, dv = p^T @ dy")
    .input("dy", kFloat, "T", "[B, H, S, Dv]")
    .with(attention_inputs)
    .input("y", kFloat, "T", "the result of sdpa")
    .optional("log_sum_exp", bit(DType::kF32) | bit(DType::kF64), "L", "[B, H, S]")
    .optional("mask", kFloat | kBoolean, "M", "broadcasts to [B, H, S, T]")
    .output("dq")
    .output("dk")
    .output("dv")
    .with(attention_attrs)
    .facts(kSums)
    .infer(infer_sdpa_gradient)
    .domain("log_sum_exp", 2, 4)
    .tolerance({.f32 = 5e-5, .f16 = 5e-3, .bf16 = 4e-2, .f64 = 1e-10})
    .sample({"plain",
             {{2, 3, 7, 8}, {2, 3, 7, 8}, {2, 3, 7, 8}, {2, 3, 7, 8}, {2, 3, 7, 8}, {2, 3, 7}},
             {}})
    .sample({"causal",
             {{1, 2, 9, 8}, {1, 2, 9, 8}, {1, 2, 9, 8}, {1, 2, 9, 8}, {1, 2, 9, 8}, {1, 2, 9}},
             {{"causal", true}}})
    .sample({"own sums",
             {{1, 2, 5, 8}, {1, 2, 5, 8}, {1, 2, 9, 8}, {1, 2, 9, 8}, {1, 2, 5, 8}},
             {{"causal", true}, {"scale", 0.25}}})
    .sample({"mask",
             {{2, 2, 5, 4}, {2, 2, 5, 8}, {2, 2, 6, 8}, {2, 2, 6, 4}, {2, 2, 5, 4}, {-1}, {5, 6}},
             {}})
    .sample({"mask of keys",
             {{2, 2, 5, 4},
              {2, 2, 5, 8},
              {2, 2, 6, 8},
              {2, 2, 6, 4},
              {2, 2, 5, 4},
              {2, 2, 5},
              {2, 1, 1, 6}},
             {}})
    .sample({"long",
             {{1, 1, 130, 20},
              {1, 1, 130, 16},
              {1, 1, 300, 16},
              {1, 1, 300, 20},
              {1, 1, 130, 20},
              {1, 1, 130}},
             {}})
    .sample({"long, own sums",
             {{1, 1, 130, 16}, {1, 1, 130, 16}, {1, 1, 300, 16}, {1, 1, 300, 16}, {1, 1, 130, 16}},
             {{"causal", true}}})
    .sample({"no keys",
             {{1, 2, 3, 8}, {1, 2, 3, 8}, {1, 2, 0, 8}, {1, 2, 0, 8}, {1, 2, 3, 8}, {1, 2, 3}},
             {}})
    .sample({"empty batch",
             {{0, 2, 3, 8}, {0, 2, 3, 8}, {0, 2, 4, 8}, {0, 2, 4, 8}, {0, 2, 3, 8}, {0, 2, 3}},
             {}});

namespace {

double scale_of(GradientContext& ctx, const Term& q) {
  const double scale = ctx.attrs().f("scale");
  if (scale != 0) return scale;
  const Dim& depth = q.shape()[3];
  if (!depth.known()) ctx.refuse("the depth of the queries is not known");
  return 1 / std::sqrt(static_cast<double>(depth.value()));
}

// Scaled scores, with -infinity where a key is not kept. `mask` is the number of that input.
Term scores_of(GradientContext& ctx, const Term& q, const Term& k, size_t mask) {
  const Term never = ctx.scalar(-INFINITY, q.dtype());
  Term scores = matrix_product(q, k, false, true, scale_of(ctx, q));
  if (ctx.has(mask)) {
    const Term m = ctx.x(mask);
    if (m.dtype() == DType::kBool)
      scores = where(m, scores, never);
    else
      scores = scores + (m.dtype() == q.dtype() ? m : m.op("cast", {{"dtype", q.dtype()}}));
  }
  if (!ctx.attrs().b("causal")) return scores;
  const Term all = ctx.fill_like(scores, 1) > 0;
  return where(all.op("trilu", {{"upper", false}}), scores, never);
}

// A query that keeps no key gives 0.
Term without_keys(const Term& scores) {
  return scores.op("reduce_max", {{"axes", std::vector<int64_t>{-1}}, {"keep_dims", true}}) ==
         -INFINITY;
}

}  // namespace

GRADIENT(sdpa) {
  const Term q = ctx.x(0), k = ctx.x(1), v = ctx.x(2);
  const bool mask = ctx.has(3) && ctx.wants(3);
  if (!mask && !ctx.dy(1)) {
    std::vector<Term> inputs{ctx.dy(), q, k, v, ctx.y(), Term(), Term()};
    if (ctx.output_count() > 1) inputs[5] = ctx.y(1);
    if (ctx.has(3)) inputs[6] = ctx.x(3);
    const std::vector<Term> all = ctx.add_all("sdpa_gradient", inputs, ctx.attrs().named(), 3);
    for (size_t i = 0; i < 3; ++i) ctx.set(i, all[i]);
    return;
  }
  const Term scores = scores_of(ctx, q, k, 3), none = without_keys(scores);
  const Term finite = where(none, 0, scores);
  const Term p = where(none, 0, finite.op("softmax", {{"axis", -1}}));
  std::vector<Term> outputs = {matrix_product(p, v, false, false, 1)};
  if (ctx.output_count() > 1) {
    const std::vector<int64_t> last{-1};
    const Term sums = where(none, -INFINITY, finite.op("reduce_log_sum_exp", {{"axes", last}}))
                          .op("squeeze", {{"axes", last}});
    const DType dtype = ctx.y(1).dtype();
    outputs.push_back(sums.dtype() == dtype ? sums : sums.op("cast", {{"dtype", dtype}}));
  }
  ctx.through(outputs);
}

GRADIENT(sdpa_gradient) {
  const Term dy = ctx.x(0), q = ctx.x(1), k = ctx.x(2), v = ctx.x(3), y = ctx.x(4);
  const Term scores = scores_of(ctx, q, k, 6);
  Term none, p;
  if (ctx.has(5)) {
    Term sums = ctx.x(5).op("unsqueeze", {{"axes", std::vector<int64_t>{-1}}});
    if (sums.dtype() != q.dtype()) sums = sums.op("cast", {{"dtype", q.dtype()}});
    none = sums == -INFINITY;
    p = where(none, 0, (scores - where(none, 0, sums)).op("exp"));
  } else {
    none = without_keys(scores);
    p = where(none, 0, where(none, 0, scores).op("softmax", {{"axis", -1}}));
  }
  const double scale = scale_of(ctx, q);
  const Term ds = p * (matrix_product(dy, v, false, true, 1) - ctx.sum(dy * y, {3}));
  ctx.through({matrix_product(ds, k, false, false, scale),
               matrix_product(ds, q, true, false, scale), matrix_product(p, dy, true, false, 1)});
}

}  // namespace anymps
