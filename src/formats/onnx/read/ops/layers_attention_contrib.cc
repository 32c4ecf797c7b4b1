// SPDX-License-Identifier: Apache-2.0
// The attention ops of com.microsoft, which exports of language models contain.
#include "formats/onnx/read/ops/layers_heads.h"
#include "formats/onnx/read/registry.h"

namespace anymps::onnx {

namespace {

using Ints = std::vector<int64_t>;

Value* part(Call& c, Value* x, int64_t axis, int64_t start, int64_t end) {
  return c.add("slice", {x}, {{"starts", Ints{start}}, {"ends", Ints{end}}, {"axes", Ints{axis}}});
}

// Which keys a mask of integers keeps: [B, T] or [B, S, T] of 0 and 1, [B, 1, M, M], or [B]
// lengths. What it hides gets a large negative number added to its score, not -infinity: a query
// that sees nothing but hidden keys sees them all alike.
Value* padding_bias(Call& c, Value* mask, Value* q, Value* k, double filter) {
  const int64_t rank = c.rank(mask);
  Value* keep;
  if (rank == 1) {
    const Dim &length = mask->shape()[0], &batch = q->shape()[0];
    if (length.known() && batch.known() && !(length == batch))
      c.unsupported("a mask of {} numbers for a batch of {} is not supported", length.value(),
                    batch.value());
    Value* lengths = c.add("reshape", {c.cast(mask, DType::kI64)}, {{"shape", Ints{-1, 1, 1, 1}}});
    keep = c.add("less", {count_up(c, extent_of(c, k, 2)), lengths});
  } else if (rank == 2 || rank == 3) {
    keep = c.add("unsqueeze", {c.cast(mask, DType::kBool)},
                 {{"axes", rank == 2 ? Ints{1, 2} : Ints{1}}});
  } else {
    c.unsupported("a mask of rank {} is not supported", rank);
  }
  return c.add("where", {keep, c.scalar_like(q, 0), c.scalar_like(q, filter)});
}

// The cache [2, B, H, P, D] as its two halves.
Value* half(Call& c, Value* past, int64_t which) {
  return c.add("squeeze", {part(c, past, 0, which, which + 1)}, {{"axes", Ints{0}}});
}

ONNX_READ_IN(kMicrosoft, Attention) {
  Value *x = c.in(0), *weights = c.in(1), *past = c.opt(4);
  if (c.flag("do_rotary", false)) c.unsupported("do_rotary is not supported");
  if (c.flag("past_present_share_buffer", false) || c.opt(6))
    c.unsupported("a cache that is shared between past and present is not supported");
  c.ignore({"rotary_embedding_dim"});
  const int64_t heads = c.i("num_heads");
  const Dim& total = weights->shape().back();
  Ints sizes = c.ints("qkv_hidden_sizes").value_or(Ints{});
  if (sizes.empty()) {
    if (!total.known()) c.unsupported("the width of the weights must be known");
    sizes.assign(3, total.value() / 3);
  }
  c.check(sizes.size() == 3, "qkv_hidden_sizes has {} numbers", sizes.size());
  Value* qkv = c.add("matmul", {x, weights, c.opt(2)});
  const Values parts = c.add_all("split", {qkv}, {{"axis", -1}, {"sizes", sizes}}, 3);
  Value *q = split_heads(c, parts[0], heads), *k = split_heads(c, parts[1], heads),
        *v = split_heads(c, parts[2], heads);
  Sight sight;
  sight.causal = c.flag("unidirectional", false);
  if (past) {
    sight.offset = extent_of(c, past, 3);
    k = c.add("concat", {half(c, past, 0), k}, {{"axis", 2}});
    v = c.add("concat", {half(c, past, 1), v}, {{"axis", 2}});
  }
  const double filter = c.f("mask_filter_value", -10000.0);
  if (Value* mask = c.opt(3)) sight.mask = padding_bias(c, mask, q, k, filter);
  Scores scores;
  scores.scale = c.f("scale", 0.0);
  scores.bias = c.opt(5);
  Value* y = join_heads(c, attend(c, q, k, v, sight, scores)[0]);
  if (!c.wants(1)) return {y};
  return {y, c.add("stack", {k, v}, {{"axis", 0}})};
}

ONNX_READ_IN(kMicrosoft, MultiHeadAttention) {
  Value *query = c.in(0), *key = c.opt(1), *value = c.opt(2), *bias = c.opt(3);
  if (c.opt(8) || c.opt(9)) c.unsupported("a cache with an indirection is not supported");
  const int64_t heads = c.i("num_heads");
  Value *q, *k, *v;
  const auto packed = [&](Value* x, int64_t which) {  // [B, S, H, n, D] -> [B, H, S, D]
    Value* one = c.add("squeeze", {part(c, x, 3, which, which + 1)}, {{"axes", Ints{3}}});
    return c.add("transpose", {one}, {{"perm", Ints{0, 2, 1, 3}}});
  };
  const auto with_bias = [&](Value* x, int64_t which) {
    if (!bias) return x;
    if (!x->shape().back().known() || !bias->shape()[0].known())
      c.unsupported("the width of the inputs must be known");
    // Of q, k and v; the last may be of another width.
    const int64_t width = query->shape().back().value(), all = bias->shape()[0].value();
    const int64_t start = which * width, end = which == 2 ? all : start + width;
    return c.add("add", {x, part(c, bias, 0, start, end)});
  };
  if (c.rank(query) == 5) {
    if (bias) c.unsupported("packed queries with a bias are not supported");
    q = packed(query, 0), k = packed(query, 1), v = packed(query, 2);
  } else {
    c.check(c.rank(query) == 3 && key, "queries of rank {} without keys", c.rank(query));
    q = split_heads(c, with_bias(query, 0), heads);
    if (c.rank(key) == 5) {
      k = packed(key, 0), v = packed(key, 1);
    } else {
      c.check(value != nullptr, "the values are missing");
      k = c.rank(key) == 4 ? key : split_heads(c, with_bias(key, 1), heads);
      v = c.rank(value) == 4 ? value : split_heads(c, with_bias(value, 2), heads);
    }
  }
  Sight sight;
  sight.causal = c.flag("unidirectional", false);
  if (Value* past = c.opt(6)) {
    sight.offset = extent_of(c, past, 2);
    k = c.add("concat", {past, k}, {{"axis", 2}});
    v = c.add("concat", {c.in(7), v}, {{"axis", 2}});
  }
  const double filter = c.f("mask_filter_value", -10000.0);
  if (Value* mask = c.opt(4)) sight.mask = padding_bias(c, mask, q, k, filter);
  Scores scores;
  scores.scale = c.f("scale", 0.0);
  scores.bias = c.opt(5);
  if (c.wants(3)) scores.output = 0;
  const Values y = attend(c, q, k, v, sight, scores);
  return {join_heads(c, y[0]), k, v, y[1]};
}

// The caches hold, for each row of the batch, keys up to a length of its own. The new ones go
// behind them: place t of row b is past[t] before the row's length, and new[t - length] from there.
Value* appended(Call& c, Value* past, Value* now, Value* lengths, Value* total) {
  if (!past) return now;
  Value* held = extent_of(c, past, 2);
  Value* all = c.add("concat", {past, now}, {{"axis", 2}});
  Value* last = c.add("sub", {extent_of(c, all, 2), number(c, 1)});
  Value* t = count_up(c, c.add("max", {held, total}));
  Value* column = c.add("reshape", {lengths}, {{"shape", Ints{-1, 1}}});
  Value* from_new = c.add("add", {c.add("sub", {t, column}), held});
  Value* place = c.add("where", {c.add("less", {t, column}), t, from_new});
  place = c.add("min", {place, last});
  Value* rows = c.add("transpose", {all}, {{"perm", Ints{0, 2, 1, 3}}});
  Value* picked = c.add("gather", {rows, place}, {{"axis", 1}, {"batch_dims", 1}});
  // Behind the new keys there is nothing.
  Value* filled = c.add("less", {t, c.add("add", {column, extent_of(c, now, 2)})});
  filled = c.add("unsqueeze", {filled}, {{"axes", Ints{2, 3}}});
  picked = c.add("where", {filled, picked, c.scalar_like(picked, 0)});
  return c.add("transpose", {picked}, {{"perm", Ints{0, 2, 1, 3}}});
}

ONNX_READ_IN(kMicrosoft, GroupQueryAttention) {
  Value *query = c.in(0), *key = c.opt(1), *value = c.opt(2), *past_k = c.opt(3),
        *past_v = c.opt(4);
  Value *cos = c.opt(7), *sin = c.opt(8), *positions = c.opt(9);
  const int64_t heads = c.i("num_heads"), shared = c.i("kv_num_heads");
  c.check(heads > 0 && shared > 0 && heads % shared == 0,
          "{} query heads do not share {} heads evenly", heads, shared);
  if (c.i("smooth_softmax", 0) > 0 || c.opt(11)) c.unsupported("a sink is not supported");
  if (c.i("qk_output", 0) != 0) c.unsupported("qk_output is not supported");
  if (c.s("k_quant_type", "NONE") != "NONE" || c.s("v_quant_type", "NONE") != "NONE")
    c.unsupported("quantized caches are not supported");
  c.ignore({"kv_cache_bit_width"});
  c.check(!past_k == !past_v, "past_key and past_value go together");
  if (!key) {  // packed
    if (!query->shape().back().known()) c.unsupported("the width of the query must be known");
    const int64_t width = query->shape().back().value() / (heads + 2 * shared);
    const Values parts = c.add_all(
        "split", {query},
        {{"axis", -1}, {"sizes", Ints{heads * width, shared * width, shared * width}}}, 3);
    query = parts[0], key = parts[1], value = parts[2];
  }
  c.check(value != nullptr, "the values are missing");
  Value *q = split_heads(c, query, heads), *k = split_heads(c, key, shared),
        *v = split_heads(c, value, shared);
  // seqlens_k is one less than the number of keys of a row, the new ones included.
  Value* rows = c.add("add", {c.cast(c.in(5), DType::kI64), number(c, 1)});
  Value* total = c.add("reshape", {c.cast(c.in(6), DType::kI64), c.graph.ints({})});
  Value* lengths = c.add("sub", {rows, extent_of(c, q, 2)});  // of the rows, before
  lengths = c.add("max", {lengths, number(c, 0)});            // a padded prompt has none
  if (!past_k) lengths = c.add("mul", {rows, number(c, 0)});
  if (c.flag("do_rotary", false)) {
    c.check(cos && sin, "do_rotary needs cos_cache and sin_cache");
    if (!positions)
      positions = c.add("add", {c.add("reshape", {lengths}, {{"shape", Ints{-1, 1}}}),
                                count_up(c, extent_of(c, q, 2))});
    Rotation rotation;
    rotation.interleaved = c.flag("rotary_interleaved", false);
    if (cos->shape().back().known()) rotation.width = 2 * cos->shape().back().value();
    cos = c.add("gather", {cos, positions}, {{"axis", 0}});
    sin = c.add("gather", {sin, positions}, {{"axis", 0}});
    q = rotate(c, q, cos, sin, rotation);
    k = rotate(c, k, cos, sin, rotation);
  } else {
    c.ignore({"rotary_interleaved"});
  }
  k = appended(c, past_k, k, lengths, total);
  v = appended(c, past_v, v, lengths, total);
  Sight sight;
  sight.causal = true;
  const int64_t window = c.i("local_window_size", -1);  // the query's own key included
  if (window > 0) sight.left = window - 1;
  sight.offset = c.add("reshape", {lengths}, {{"shape", Ints{-1, 1, 1, 1}}});
  if (!past_k && sight.left < 0) sight.offset = nullptr;
  if (past_k) sight.keys = c.add("reshape", {rows}, {{"shape", Ints{-1, 1, 1, 1}}});
  Scores scores;
  scores.scale = c.f("scale", 0.0);
  scores.softcap = c.f("softcap", 0.0);
  scores.bias = c.opt(10);
  const int64_t times = heads / shared;
  const Values y =
      attend(c, q, repeat_heads(c, k, times), repeat_heads(c, v, times), sight, scores);
  return {join_heads(c, y[0]), k, v};
}

ONNX_READ_IN(kMicrosoft, RotaryEmbedding) {
  Value *x = c.in(0), *positions = c.cast(c.in(1), DType::kI64), *cos = c.in(2), *sin = c.in(3);
  if (c.f("scale", 1.0) != 1) c.unsupported("a scale is not supported");
  if (c.flag("is_packed_batching", false)) c.unsupported("packed batches are not supported");
  Rotation rotation;
  rotation.interleaved = c.flag("interleaved", false);
  rotation.width = c.i("rotary_embedding_dim", 0);
  const int64_t heads = c.i("num_heads", 0);
  const bool flat = c.rank(x) == 3;
  if (c.rank(positions) == 1) {  // where the first is; the same for each row
    Value* count = count_up(c, extent_of(c, x, flat ? 1 : 2));
    positions = c.add("add", {positions, count});
  }
  cos = c.add("gather", {cos, positions}, {{"axis", 0}});
  sin = c.add("gather", {sin, positions}, {{"axis", 0}});
  if (!flat) return {rotate(c, x, cos, sin, rotation)};
  int64_t width = 0;
  if (heads == 0) {
    const Dim& angles = cos->shape().back();
    if (!angles.known()) c.unsupported("the width of the caches must be known");
    width = 2 * angles.value();
  }
  rotation.heads_axis = 2;
  Value* split =
      c.add("reshape", {x}, {{"shape", heads > 0 ? Ints{0, 0, heads, -1} : Ints{0, 0, -1, width}}});
  return {c.add("reshape", {rotate(c, split, cos, sin, rotation)}, {{"shape", Ints{0, 0, -1}}})};
}

}  // namespace

}  // namespace anymps::onnx
