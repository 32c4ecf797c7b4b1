// SPDX-License-Identifier: Apache-2.0
// ExecuTorch's own operators for language models: caches of keys and values, and attention over
// what a cache holds. Tensors are [batch, position, head, element].
#include <cstring>

#include "formats/executorch/operators/aten.h"

namespace anymps::executorch {

namespace {

constexpr int64_t kPositions = 1, kHeads = 2;
constexpr int64_t kMaxHeads = 1 << 16;  // they are listed

void check_rank(const KernelArguments& c, const Value* x, const char* what) {
  c.check(c.rank(x) == 4, "{} has rank {}, must be 4", what, c.rank(x));
}

// The cache with `x` at the positions from `start` on.
Value* updated(KernelArguments& c, Value* cache, Value* x, size_t start) {
  check_rank(c, cache, "the cache");
  check_rank(c, x, "what goes into the cache");
  x = c.cast(x, cache->dtype());
  if (c.is_known(start) && x->shape()[kPositions].known()) {
    const int64_t first = c.i(start), count = known_extent(c, x, kPositions);
    c.check(first >= 0 && first <= INT64_MAX - count, "the first position is {}", first);
    return c.add(
        "slice_update", {cache, x},
        {{"starts", Ints{first}}, {"ends", Ints{first + count}}, {"axes", Ints{kPositions}}});
  }
  Value* first = reshape(c, c.number(start, DType::kI64), {1});
  Value* end = c.add("add", {first, reshape(c, extent_of(c, x, kPositions), {1})});
  return c.add("slice_update", {cache, x, first, end, c.graph.ints({kPositions})});
}

// Nothing reads the result: the cache is what is written.
Value* placeholder(KernelArguments& c) {
  const Tensor& result = c.result();
  const Shape shape(result.sizes.begin(), result.sizes.end());
  return c.graph.constant(Constant::lazy(
      result.dtype, shape,
      [bytes = byte_count(result.dtype, shape)](std::byte* out) { std::memset(out, 0, bytes); }));
}

// (value, cache, start_pos)
Values update_cache(KernelArguments& c) {
  return {placeholder(c), updated(c, c.tensor(1), c.tensor(0), 2)};
}

// Heads before positions; each head of the keys serves as many of the queries' as there are more.
Value* by_head(KernelArguments& c, Value* x, int64_t heads) {
  const int64_t own = known_extent(c, x, kHeads);
  if (own != heads) {
    c.check(own > 0 && heads % own == 0, "{} heads of queries for {} of keys", heads, own);
    Ints places;
    for (int64_t i = 0; i < heads; ++i) places.push_back(i / (heads / own));
    x = c.add("gather", {x, constant_ints(c, places, {heads})}, {{"axis", kHeads}});
  }
  return transpose(c, x, {0, 2, 1, 3});
}

// Without a mask the cache is read up to the last query; with one, all of it is.
struct Attention {
  Value *q, *k, *v, *mask;
  size_t start, dropout, causal, scale;  // arguments
};

Value* cached_attention(KernelArguments& c, Attention at) {
  check_rank(c, at.q, "the query");
  check_rank(c, at.k, "the key");
  check_rank(c, at.v, "the value");
  if (c.f(at.dropout) != 0) c.unsupported("dropout of {}", c.f(at.dropout));
  const int64_t heads = known_extent(c, at.q, kHeads);
  c.check(heads <= kMaxHeads, "{} heads are more than {}", heads, kMaxHeads);
  const bool causal = c.b(at.causal);
  c.check(!causal || !at.mask, "a mask, and causal attention as well");
  Values inputs = {by_head(c, at.q, heads)};
  Value* start = c.number(at.start, DType::kI64);
  Value* end = c.add("add", {start, extent_of(c, at.q, kPositions)});
  for (Value* x : {at.k, at.v}) {
    if (!at.mask)
      x = c.add("slice", {x, c.graph.ints({0}), reshape(c, end, {1}), c.graph.ints({kPositions})});
    inputs.push_back(by_head(c, x, heads));
  }
  if (at.mask) inputs.push_back(c.cast(at.mask, at.q->dtype()));
  if (causal) {
    Value* queries = c.add("add", {numbers_to(c, extent_of(c, at.q, kPositions)), start});
    inputs.push_back(c.add("less_equal", {numbers_to(c, end), unsqueeze(c, queries, {1})}));
  }
  Value* y = c.add("sdpa", inputs, {{"scale", c.maybe_f(at.scale).value_or(0)}});
  return transpose(c, y, {0, 2, 1, 3});
}

// (query, key, value, start_pos, attn_mask, drpout_p, is_causal, scale); key and value are caches.
Values custom_sdpa(KernelArguments& c) {
  return {
      cached_attention(c, {c.tensor(0), c.tensor(1), c.tensor(2), c.maybe_tensor(4), 3, 5, 6, 7})};
}

// (query, key, value, key_cache, value_cache, start_pos, seq_len, attn_mask, drpout_p, is_causal,
// scale): seq_len is that of the query.
Values sdpa_with_kv_cache(KernelArguments& c) {
  Value *keys = updated(c, c.tensor(3), c.tensor(1), 5),
        *values = updated(c, c.tensor(4), c.tensor(2), 5);
  Value* y = cached_attention(c, {c.tensor(0), keys, values, c.maybe_tensor(7), 5, 8, 9, 10});
  return {y, keys, values};
}

const KernelConverters kLlama{
    {"llama::custom_sdpa.out", custom_sdpa},
    {"llama::sdpa_with_kv_cache.out", sdpa_with_kv_cache, "", {3, 4}},
    {"llama::update_cache.out", update_cache, "", {1}},
};

}  // namespace

}  // namespace anymps::executorch
