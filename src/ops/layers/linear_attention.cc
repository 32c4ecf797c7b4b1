// SPDX-License-Identifier: Apache-2.0
// Attention without a softmax: the keys and values seen so far are one matrix per head, which each
// step lets decay, corrects and adds to. The cost grows with the length, not with its square.
#include "ops/layers/linear_attention.h"
#include "ops/gradient.h"

#include <cmath>

namespace anymps {

static Dim divided(const InferContext& ctx, const Dim& width, int64_t heads, const char* what) {
  ctx.check(!width.known() || width.value() % heads == 0, "{} {} do not divide into {} heads",
            width.str(), what, heads);
  return width.known() ? Dim(width.value() / heads) : ctx.fresh(what);
}

LinearAttentionShapes linear_attention_shapes(InferContext& ctx) {
  for (size_t i = 0; i < 3; ++i) expect_rank(ctx, i, 3, 3);
  const int64_t queries = ctx.attrs.i("query_heads"), heads = ctx.attrs.i("heads");
  ctx.check(heads > 0 && queries > 0 && queries % heads == 0,
            "{} query heads do not share {} heads evenly", queries, heads);
  const Dims &q = ctx.shape(0), &k = ctx.shape(1), &v = ctx.shape(2);
  const Dim depth =
      known_of(divided(ctx, k[2], heads, "keys"), divided(ctx, q[2], queries, "queries"));
  const Dim width = divided(ctx, v[2], heads, "values");
  const Dim batch = known_of(q[0], known_of(k[0], v[0])),
            length = known_of(q[1], known_of(k[1], v[1]));
  expect_shape(ctx, 0, {batch, length, depth.known() ? Dim(depth.value() * queries) : q[2]});
  expect_shape(ctx, 1, {batch, length, depth.known() ? Dim(depth.value() * heads) : k[2]});
  expect_shape(ctx, 2, {batch, length, v[2]});
  const Dims state{batch, heads, depth, width};
  expect_shape(ctx, 3, state);
  if (ctx.has(4) && ctx.type(4).ranked) {
    expect_rank(ctx, 4, 3, 3);
    const Dim& last = ctx.shape(4)[2];
    expect_shape(ctx, 4, {batch, length, last});
    ctx.check(!last.known() || !depth.known() || last.is(heads) || last.is(heads * depth.value()),
              "decay has shape {}: one a head ({}) or one a key element ({}) is needed",
              to_string(ctx.shape(4)), heads, depth.known() ? heads * depth.value() : 0);
  }
  if (ctx.has(5) && ctx.type(5).ranked) {
    expect_rank(ctx, 5, 3, 3);
    const Dim& last = ctx.shape(5)[2];
    expect_shape(ctx, 5, {batch, length, last});
    ctx.check(!last.known() || last.is(heads) || last.is(1),
              "beta has shape {}: the last extent "
              "must be {} or 1",
              to_string(ctx.shape(5)), heads);
  }
  return {batch, length, width, state};
}

LinearAttention linear_attention_of(const Attrs& attrs,
                                    const std::vector<std::optional<Shape>>& inputs) {
  const Shape &q = *inputs[0], &k = *inputs[1], &v = *inputs[2];
  LinearAttention attention{.batches = q[0],
                            .length = q[1],
                            .queries = attrs.i("query_heads"),
                            .heads = attrs.i("heads"),
                            .depth = k[2] / attrs.i("heads"),
                            .width = v[2] / attrs.i("heads"),
                            .decays = inputs[4] ? (*inputs[4])[2] : 0,
                            .betas = inputs[5] ? (*inputs[5])[2] : 0,
                            .scale = attrs.f("scale")};
  if (attention.scale == 0) attention.scale = 1 / std::sqrt(static_cast<double>(attention.depth));
  return attention;
}

OpWriter& linear_attention_rows(OpWriter& op) {
  return op.input("q", kFloat, "T", "[B, T, query_heads * D]")
      .input("k", kFloat, "T", "[B, T, heads * D]")
      .input("v", kFloat, "T", "[B, T, heads * Dv]");
}
OpWriter& linear_attention_gates(OpWriter& op) {
  return op.optional("decay", kFloat, "T", "[B, T, heads] or [B, T, heads * D]; absent: none")
      .optional("beta", kFloat, "T", "[B, T, heads] or [B, T, 1]; absent: no correction");
}
OpWriter& linear_attention_heads(OpWriter& op) {
  return op.required("query_heads", AttrKind::kInt)
      .required("heads", AttrKind::kInt)
      .attr("scale", 0.0, "0: 1/sqrt(D)")
      .domain("decay", -2, 0)
      .domain("beta", 0, 1)
      .domain("k", -0.5, 0.5);
}

namespace {

void infer_linear_attention(InferContext& ctx) {
  const auto [batch, length, width, state] = linear_attention_shapes(ctx);
  const int64_t queries = ctx.attrs.i("query_heads");
  ctx.set(0, {batch, length, width.known() ? Dim(width.value() * queries) : ctx.fresh("width")});
  if (ctx.output_count() > 1) ctx.set(1, ctx.has(3) ? ctx.dtype(3) : ctx.dtype(0), state);
}

double cost(const Attrs& attrs, const std::vector<Shape>& in, const std::vector<Shape>&) {
  const double queries = static_cast<double>(attrs.i("query_heads"));
  double steps = 6;
  for (const int64_t extent : in[2]) steps *= static_cast<double>(extent);
  return steps * static_cast<double>(in[0][2]) / queries;
}

}  // namespace

OP(linear_attention)
    .doc(
        "Attention without a softmax. Heads lie side by side in the last axis; several query heads "
        "may share one head of keys and values. For each place in turn the state of a head decays "
        "by exp(decay), with a beta the value is corrected by what the state already gives for the "
        "key, and the product of key and value is added; the query then reads the state.")
    .formula(
        "S = exp(decay) * S; v' = beta * (v - S^T k), or v without beta; S = S + k v'^T; "
        "y = scale * S^T q")
    .with(linear_attention_rows)
    .optional("past", kFloat, "S", "the state before, [B, heads, D, Dv]; absent: 0")
    .with(linear_attention_gates)
    .output("y", "T", "[B, T, query_heads * Dv]")
    .output("state", "", "the state after, [B, heads, D, Dv]; optional")
    .with(linear_attention_heads)
    .infer(infer_linear_attention)
    .cost(cost)
    .tolerance({.f32 = 5e-5, .f16 = 8e-3, .bf16 = 5e-2, .f64 = 1e-10})
    .sample({"linear", {{2, 5, 6}, {2, 5, 6}, {2, 5, 8}}, {{"query_heads", 2}, {"heads", 2}}})
    .sample({"shared heads",
             {{1, 4, 12}, {1, 4, 6}, {1, 4, 10}, {1, 2, 3, 5}},
             {{"query_heads", 4}, {"heads", 2}, {"scale", 0.5}}})
    .sample({"gated",
             {{2, 6, 6}, {2, 6, 6}, {2, 6, 4}, {2, 2, 3, 2}, {2, 6, 2}},
             {{"query_heads", 2}, {"heads", 2}}})
    .sample({"gated keys",
             {{1, 6, 6}, {1, 6, 6}, {1, 6, 4}, {-1}, {1, 6, 6}},
             {{"query_heads", 2}, {"heads", 2}}})
    .sample({"delta",
             {{1, 6, 6}, {1, 6, 6}, {1, 6, 4}, {-1}, {-1}, {1, 6, 2}},
             {{"query_heads", 2}, {"heads", 2}}})
    .sample({"gated delta",
             {{2, 7, 16}, {2, 7, 8}, {2, 7, 6}, {2, 1, 8, 6}, {2, 7, 1}, {2, 7, 1}},
             {{"query_heads", 2}, {"heads", 1}}})
    .sample({"no places",
             {{2, 0, 6}, {2, 0, 6}, {2, 0, 8}, {2, 2, 3, 4}},
             {{"query_heads", 2}, {"heads", 2}}});

// The walk back over the places is a separate op.
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
