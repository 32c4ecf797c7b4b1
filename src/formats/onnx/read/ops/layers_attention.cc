// SPDX-License-Identifier: Apache-2.0
// Attention and what goes with it: heads in a separate axis or side by side in the last one,
// grouped queries, masks, causality, windows, caches of keys and values; rotary embedding; linear
// attention and the causal convolution of state-space models.
#include "formats/onnx/read/ops/layers_heads.h"
#include "formats/onnx/read/registry.h"

namespace anymps::onnx {

namespace {

using Ints = std::vector<int64_t>;

// What has four axes has its heads already.
Value* with_heads(Call& c, Value* x, const char* heads) {
  if (c.rank(x) == 4) return x;
  c.check(c.rank(x) == 3, "Q, K and V must have rank 3 or 4, one has {}", c.rank(x));
  return split_heads(c, x, c.i(heads));
}

int64_t shared_heads(Call& c, Value* q, Value* k) {
  const Dim &queries = q->shape()[1], &keys = k->shape()[1];
  if (queries == keys) return 1;
  if (!queries.known() || !keys.known()) c.unsupported("the numbers of heads must be known");
  c.check(keys.value() > 0 && queries.value() % keys.value() == 0,
          "{} query heads do not share {} heads evenly", queries.value(), keys.value());
  return queries.value() / keys.value();
}

ONNX_READ(Attention) {
  c.ignore({"q_num_heads", "kv_num_heads"});
  const bool flat = c.rank(c.in(0)) == 3;
  Value* q = with_heads(c, c.in(0), "q_num_heads");
  Value* k = with_heads(c, c.in(1), "kv_num_heads");
  Value* v = with_heads(c, c.in(2), "kv_num_heads");
  Sight sight;
  sight.causal = c.flag("is_causal", false);
  sight.left = c.i("left_window_size", -1);
  sight.right = c.i("right_window_size", -1);
  c.check(sight.left >= -1 && sight.right >= -1, "a window has the size {}",
          std::min(sight.left, sight.right));
  sight.mask = c.opt(3);
  sight.extend_mask = true;
  Value *past_k = c.opt(4), *past_v = c.opt(5), *lengths = c.opt(6);
  c.check(!past_k == !past_v, "past_key and past_value go together");
  c.check(!lengths || !past_k, "nonpad_kv_seqlen does not go with a past");
  if (past_k) {
    sight.offset = extent_of(c, past_k, 2);
    k = c.add("concat", {past_k, k}, {{"axis", 2}});
    v = c.add("concat", {past_v, v}, {{"axis", 2}});
  }
  if (lengths) {
    sight.keys = c.add("reshape", {c.cast(lengths, DType::kI64)}, {{"shape", Ints{-1, 1, 1, 1}}});
    sight.offset = c.add("sub", {sight.keys, extent_of(c, q, 2)});
  }
  Scores scores;
  scores.scale = c.f("scale", 0.0);
  scores.softcap = c.f("softcap", 0.0);
  const int64_t mode = c.i("qk_matmul_output_mode", 0);
  c.check(mode >= 0 && mode <= 3, "qk_matmul_output_mode is {}", mode);
  if (c.wants(3)) scores.output = static_cast<int>(mode);
  if (c.has("softmax_precision")) {
    const DType dtype = c.dtype("softmax_precision");
    if (dtype != DType::kF32 || q->dtype() == DType::kF64) scores.softmax_dtype = dtype;
  }
  const int64_t times = shared_heads(c, q, k);
  const Values y =
      attend(c, q, repeat_heads(c, k, times), repeat_heads(c, v, times), sight, scores);
  return {flat ? join_heads(c, y[0]) : y[0], k, v, y[1]};
}

ONNX_READ(RotaryEmbedding) {
  Value *x = c.in(0), *cos = c.in(1), *sin = c.in(2), *places = c.opt(3);
  Rotation rotation;
  rotation.interleaved = c.flag("interleaved", false);
  rotation.width = c.i("rotary_embedding_dim", 0);
  const int64_t heads = c.i("num_heads", 0);
  if (places) {
    cos = c.add("gather", {cos, places}, {{"axis", 0}});
    sin = c.add("gather", {sin, places}, {{"axis", 0}});
  }
  if (c.rank(x) == 4) return {rotate(c, x, cos, sin, rotation)};
  c.check(c.rank(x) == 3 && heads > 0, "an input of rank {} with num_heads {}", c.rank(x), heads);
  rotation.heads_axis = 2;
  Value* split = c.add("reshape", {x}, {{"shape", Ints{0, 0, heads, -1}}});
  Value* turned = rotate(c, split, cos, sin, rotation);
  return {c.add("reshape", {turned}, {{"shape", Ints{0, 0, -1}}})};
}

ONNX_READ(LinearAttention) {
  c.ignore({"chunk_size"});  // how to compute, not what
  const std::string rule = c.s("update_rule", "gated_delta");
  c.check(rule == "linear" || rule == "gated" || rule == "delta" || rule == "gated_delta",
          "update_rule '{}' is not known", rule);
  const bool gated = rule.starts_with("gated"), delta = rule.ends_with("delta");
  Value *past = c.opt(3), *decay = c.opt(4), *beta = c.opt(5);
  c.check(gated == (decay != nullptr), "update_rule '{}' {} a decay", rule,
          gated ? "needs" : "does not go with");
  c.check(delta == (beta != nullptr), "update_rule '{}' {} a beta", rule,
          delta ? "needs" : "does not go with");
  return c.add_all("linear_attention", {c.in(0), c.in(1), c.in(2), past, decay, beta},
                   {{"query_heads", c.i("q_num_heads")},
                    {"heads", c.i("kv_num_heads")},
                    {"scale", c.f("scale", 0.0)}},
                   2);
}

// A convolution of each channel with what came before; the last inputs are handed on.
ONNX_READ(CausalConvWithState) {
  Value *x = c.in(0), *w = c.in(1), *past = c.opt(3);
  const std::string activation = c.s("activation", "none");
  c.check(activation == "none" || activation == "silu" || activation == "swish",
          "activation '{}' is not known", activation);
  c.check(c.rank(x) == 3 && c.rank(w) == 3, "input and weight must have rank 3");
  const Dim &channels = w->shape()[0], &taps = w->shape()[2];
  if (!channels.known() || !taps.known()) c.unsupported("the shape of the weight must be known");
  const int64_t before = taps.value() - 1;
  Value* padded = past ? c.add("concat", {past, x}, {{"axis", 2}})
                       : c.add("pad", {x}, {{"pads", Ints{0, 0, before, 0, 0, 0}}});
  Value* y = c.add("conv", {padded, w, c.opt(2)}, {{"groups", channels.value()}});
  if (activation != "none") y = c.add("silu", {y});
  if (!c.wants(1)) return {y};
  Value* first =
      c.add("sub", {c.add("shape", {padded}, {{"start", 2}, {"end", 3}}), c.graph.ints({before})});
  Value* end = c.add("shape", {padded}, {{"start", 2}, {"end", 3}});
  return {y, c.add("slice", {padded, first, end, c.graph.ints({2}), nullptr})};
}

}  // namespace

}  // namespace anymps::onnx
