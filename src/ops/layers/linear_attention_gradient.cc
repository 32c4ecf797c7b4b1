// SPDX-License-Identifier: Apache-2.0
// The gradients of linear attention, by a walk back over the places. Inputs and attributes are
// those of the op; then come the gradients of its outputs.
#include "ops/gradient.h"
#include "ops/layers/linear_attention.h"

namespace anymps {

namespace {

void infer_linear_attention_gradient(InferContext& ctx) {
  const auto [batch, length, width, state] = linear_attention_shapes(ctx);
  const int64_t queries = ctx.attrs.i("query_heads"), heads = ctx.attrs.i("heads");
  expect_shape(ctx, 6,
               {batch, length, width.known() ? Dim(width.value() * queries) : ctx.shape(2)[2]});
  expect_shape(ctx, 7, state);
  for (size_t i = 0; i < 3; ++i) ctx.set(i, ctx.shape(i));
  ctx.set(3, ctx.has(3) ? ctx.dtype(3) : ctx.dtype(0), state);
  const Dims one_a_head{batch, length, heads};
  ctx.set(4, ctx.has(4) ? ctx.shape(4) : one_a_head);
  ctx.set(5, ctx.has(5) ? ctx.shape(5) : one_a_head);
}

}  // namespace

OP(linear_attention_gradient)
    .doc(
        "The gradients of linear_attention to all of its inputs, from those of its outputs; of "
        "what is absent they are 0.")
    .formula("dq, dk, … = sum over places, from the last to the first, of the gradients of a place")
    .with(linear_attention_rows)
    .optional("past", kFloat, "S", "[B, heads, D, Dv]; absent: 0")
    .with(linear_attention_gates)
    .optional("dy", kFloat, "T", "of y; absent: 0")
    .optional("dstate", kFloat, "S", "of the state after; absent: 0")
    .outputs({"dq", "dk", "dv"})
    .output("dpast", "")
    .outputs({"ddecay", "dbeta"})
    .with(linear_attention_heads)
    .infer(infer_linear_attention_gradient)
    .tolerance({.f32 = 1e-4, .f16 = 2e-2, .bf16 = 1e-1, .f64 = 1e-10})
    .sample({"linear",
             {{2, 5, 6}, {2, 5, 6}, {2, 5, 8}, {-1}, {-1}, {-1}, {2, 5, 8}},
             {{"query_heads", 2}, {"heads", 2}}})
    .sample({"shared heads, gated keys",
             {{1, 4, 12}, {1, 4, 6}, {1, 4, 10}, {1, 2, 3, 5}, {1, 4, 6}, {-1}, {1, 4, 20}},
             {{"query_heads", 4}, {"heads", 2}, {"scale", 0.5}}})
    .sample({"gated delta",
             {{2, 7, 16},
              {2, 7, 8},
              {2, 7, 6},
              {2, 1, 8, 6},
              {2, 7, 1},
              {2, 7, 1},
              {2, 7, 12},
              {2, 1, 8, 6}},
             {{"query_heads", 2}, {"heads", 1}}})
    .sample({"no places",
             {{2, 0, 6}, {2, 0, 6}, {2, 0, 8}, {2, 2, 3, 4}, {-1}, {-1}, {-1}, {2, 2, 3, 4}},
             {{"query_heads", 2}, {"heads", 2}}});

NO_GRADIENT(linear_attention_gradient, "linear attention has no second gradient");

}  // namespace anymps
