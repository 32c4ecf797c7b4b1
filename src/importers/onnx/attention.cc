// SPDX-License-Identifier: Apache-2.0
// Attention of opset 23: heads in an axis of their own or side by side in the last one, grouped
// queries, a mask or causality.
#include "importers/onnx/registry.h"

namespace anymps::onnx {

namespace {

using Ints = std::vector<int64_t>;

// [B, S, H*D] -> [B, H, S, D]; what has four axes is left alone.
Value* split_heads(Call& c, Value* x, const char* heads) {
  if (c.rank(x) == 4) return x;
  c.check(c.rank(x) == 3, "Q, K and V must have rank 3 or 4, one has {}", c.rank(x));
  const int64_t count = c.i(heads);
  c.check(count > 0, "{} is {}", heads, count);
  return c.add("transpose", {c.add("reshape", {x}, {{"shape", Ints{0, 0, count, -1}}})},
               {{"perm", Ints{0, 2, 1, 3}}});
}

// Several query heads share one head of K and V: repeat it for each of them.
Value* repeat_heads(Call& c, Value* x, int64_t times) {
  const Dim& width = x->shape()[3];
  if (!x->shape()[1].known() || !width.known())
    c.unsupported("the heads and their width must be known, the shape is {}",
                  to_string(x->shape()));
  const int64_t heads = x->shape()[1].value() * times;
  Value* wide = c.add("expand", {c.add("unsqueeze", {x}, {{"axes", Ints{2}}})},
                      {{"shape", Ints{1, 1, times, 1, 1}}});
  return c.add("reshape", {wide}, {{"shape", Ints{0, heads, -1, width.value()}}});
}

Values Attention(Call& c) {
  if (c.f("softcap", 0.0) != 0) c.unsupported("softcap is not supported");
  c.ignore({"softmax_precision", "qk_matmul_output_mode", "q_num_heads", "kv_num_heads"});
  const bool flat = c.rank(c.in(0)) == 3, causal = c.flag("is_causal", false);
  Value* q = split_heads(c, c.in(0), "q_num_heads");
  Value* k = split_heads(c, c.in(1), "kv_num_heads");
  Value* v = split_heads(c, c.in(2), "kv_num_heads");
  if (c.opt(4) || c.opt(5)) {
    if (causal) c.unsupported("is_causal with past keys is not supported");
    k = c.add("concat", {c.in(4), k}, {{"axis", 2}});
    v = c.add("concat", {c.in(5), v}, {{"axis", 2}});
  }
  Values results = {nullptr, k, v};
  const Dim &queries = q->shape()[1], &keys = k->shape()[1];
  if (!(queries == keys)) {
    if (!queries.known() || !keys.known()) c.unsupported("the numbers of heads must be known");
    c.check(keys.value() > 0 && queries.value() % keys.value() == 0,
            "{} query heads do not share {} heads evenly", queries.value(), keys.value());
    const int64_t times = queries.value() / keys.value();
    k = repeat_heads(c, k, times);
    v = repeat_heads(c, v, times);
  }
  Value* y = c.add("sdpa", {q, k, v, c.opt(3)}, {{"scale", c.f("scale", 0.0)}, {"causal", causal}});
  if (flat)
    y = c.add("reshape", {c.add("transpose", {y}, {{"perm", Ints{0, 2, 1, 3}}})},
              {{"shape", Ints{0, 0, -1}}});
  results[0] = y;
  return results;
}

const Converter kTable[] = {
    {"Attention", Attention},
};

}  // namespace

std::span<const Converter> attention_converters() { return kTable; }

}  // namespace anymps::onnx
