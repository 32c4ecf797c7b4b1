// SPDX-License-Identifier: Apache-2.0
#include "formats/onnx/read/ops/layers_heads.h"

#include <cmath>
#include <limits>

namespace anymps::onnx {

namespace {

using Ints = std::vector<int64_t>;

Value* both(Call& c, Value* a, Value* b) {
  if (!a || !b) return a ? a : b;
  return c.add("logical_and", {a, b});
}

Value* low(Call& c, const Value* like) {
  return c.scalar_like(like, -std::numeric_limits<double>::infinity());
}

// True where a query may see a key, from places alone; null if it may see all.
Value* visible(Call& c, Value* q, Value* k, const Sight& sight) {
  if (!sight.causal && sight.left < 0 && sight.right < 0 && !sight.keys) return nullptr;
  Value* keys = count_up(c, extent_of(c, k, 2));
  Value* queries = c.add("unsqueeze", {count_up(c, extent_of(c, q, 2))}, {{"axes", Ints{1}}});
  Value* at = sight.offset ? c.add("add", {queries, sight.offset}) : queries;
  Value* seen = nullptr;
  if (sight.causal) seen = c.add("less_equal", {keys, at});
  if (sight.left >= 0)
    seen = both(c, seen, c.add("greater_equal", {keys, c.add("sub", {at, number(c, sight.left)})}));
  if (sight.right >= 0)
    seen = both(c, seen, c.add("less_equal", {keys, c.add("add", {at, number(c, sight.right)})}));
  if (sight.keys) seen = both(c, seen, c.add("less", {keys, sight.keys}));
  return seen;
}

// A mask that is shorter than the keys hides those that it does not speak of.
Value* extended(Call& c, Value* mask, Value* k) {
  const int64_t rank = c.rank(mask);
  c.check(rank >= 1, "the mask is a scalar");
  const Dim &length = mask->shape().back(), &keys = k->shape()[2];
  if (length == keys) return mask;
  Value* after;
  if (length.known() && keys.known()) {
    if (keys.value() <= length.value()) return mask;
    after = c.graph.ints({keys.value() - length.value()});
  } else {
    Value* missing = c.add("sub", {extent_of(c, k, 2), extent_of(c, mask, rank - 1)});
    after = c.add("unsqueeze", {c.add("max", {missing, number(c, 0)})}, {{"axes", Ints{0}}});
  }
  Value* pads = c.add("concat", {c.graph.ints({0}), after}, {{"axis", 0}});
  Value* hidden = mask->dtype() == DType::kBool ? c.graph.scalar(DType::kBool, 0) : low(c, mask);
  return c.add("pad", {mask, pads, hidden, c.graph.ints({-1})});
}

// The scores written out, for what the fused op does not do.
Values attend_in_steps(Call& c, Value* q, Value* k, Value* v, Value* seen, Value* bias,
                       const Scores& scores) {
  const DType type = q->dtype();
  const DType wide = type == DType::kF64 ? type : DType::kF32;
  double scale = scores.scale;
  if (scale == 0) {
    const Dim& depth = q->shape()[3];
    if (!depth.known()) c.unsupported("the width of a head must be known");
    scale = 1 / std::sqrt(static_cast<double>(depth.value()));
  }
  Value* steps[4];
  Value* s = c.add("matmul", {c.cast(q, wide), c.cast(k, wide)},
                   {{"transpose_b", true}, {"alpha", scale}});
  steps[0] = s;
  if (scores.softcap > 0) {
    Value* cap = c.graph.scalar(wide, scores.softcap);
    s = c.add("mul", {c.add("tanh", {c.add("div", {s, cap})}), cap});
  }
  steps[1] = s;
  if (bias) {
    // A key that is hidden stays so, whatever its score is.
    bias = c.cast(bias, wide);
    Value* sum = c.add("add", {s, bias});
    s = c.add("where", {c.add("equal", {bias, low(c, bias)}), low(c, s), sum});
  }
  if (seen) s = c.add("where", {seen, s, low(c, s)});
  steps[2] = s;
  Value* x = scores.softmax_dtype ? c.cast(s, *scores.softmax_dtype) : s;
  Value* p = c.add("softmax", {x}, {{"axis", -1}});
  if (seen || bias) {  // a query that sees no key gives 0
    Value* most = c.add("reduce_max", {s}, {{"axes", Ints{-1}}, {"keep_dims", true}});
    p = c.add("where", {c.add("equal", {most, low(c, most)}), c.scalar_like(p, 0), p});
  }
  steps[3] = p;
  Value* y = c.cast(c.add("matmul", {c.cast(p, wide), c.cast(v, wide)}), type);
  if (scores.output < 0) return {y, nullptr};
  return {y, c.cast(steps[scores.output], type)};
}

}  // namespace

Value* number(Call& c, int64_t value) {
  return c.graph.constant(anymps::Constant::of<int64_t>({}, {value}));
}

Value* extent_of(Call& c, Value* x, int64_t axis) {
  if (x->type.ranked) {
    const Dim& extent = x->shape()[c.normalize(axis, c.rank(x))];
    if (extent.known()) return number(c, extent.value());
  }
  NamedAttrs attrs = {{"start", axis}};
  if (axis != -1) attrs.emplace_back("end", axis + 1);
  return c.add("squeeze", {c.add("shape", {x}, attrs)}, {{"axes", Ints{0}}});
}

Value* count_up(Call& c, Value* count) {
  return c.add("range", {number(c, 0), count, number(c, 1)});
}

Value* split_heads(Call& c, Value* x, int64_t heads) {
  c.check(heads > 0, "the number of heads is {}", heads);
  return c.add("transpose", {c.add("reshape", {x}, {{"shape", Ints{0, 0, heads, -1}}})},
               {{"perm", Ints{0, 2, 1, 3}}});
}

Value* join_heads(Call& c, Value* x) {
  return c.add("reshape", {c.add("transpose", {x}, {{"perm", Ints{0, 2, 1, 3}}})},
               {{"shape", Ints{0, 0, -1}}});
}

Value* repeat_heads(Call& c, Value* x, int64_t times) {
  if (times == 1) return x;
  Value* wide = c.add("expand", {c.add("unsqueeze", {x}, {{"axes", Ints{2}}})},
                      {{"shape", Ints{1, 1, times, 1, 1}}});
  if (x->shape()[1].known() && x->shape()[3].known())
    return c.add("reshape", {wide},
                 {{"shape", Ints{0, x->shape()[1].value() * times, -1, x->shape()[3].value()}}});
  Value* heads = c.add("mul", {c.add("shape", {x}, {{"start", 1}, {"end", 2}}), number(c, times)});
  Value* shape = c.add("concat",
                       {c.add("shape", {x}, {{"start", 0}, {"end", 1}}), heads,
                        c.add("shape", {x}, {{"start", 2}, {"end", 4}})},
                       {{"axis", 0}});
  return c.add("reshape", {wide, shape}, {{"allow_zero", true}});
}

Values attend(Call& c, Value* q, Value* k, Value* v, const Sight& sight, const Scores& scores) {
  Value* mask = sight.mask;
  if (mask && sight.extend_mask) mask = extended(c, mask, k);
  Value* bias = mask && mask->dtype() != DType::kBool ? mask : nullptr;
  if (scores.bias) bias = bias ? c.add("add", {bias, scores.bias}) : scores.bias;
  const bool fused = scores.softcap <= 0 && scores.output < 0 && !scores.softmax_dtype;
  // The fused op's own causality counts queries and keys from the first.
  const bool plain_causal =
      fused && sight.causal && sight.left < 0 && sight.right < 0 && !sight.keys && !sight.offset;
  Value* seen = plain_causal ? nullptr : visible(c, q, k, sight);
  if (mask && mask->dtype() == DType::kBool) seen = both(c, seen, mask);
  if (!fused) return attend_in_steps(c, q, k, v, seen, bias, scores);
  if (seen && bias) {
    bias = c.add("where", {seen, bias, low(c, bias)});
    seen = nullptr;
  }
  return {c.add("sdpa", {q, k, v, seen ? seen : bias},
                {{"scale", scores.scale}, {"causal", plain_causal}}),
          nullptr};
}

Value* rotate(Call& c, Value* x, Value* cos, Value* sin, const Rotation& rotation) {
  c.check(c.rank(x) == 4, "the input of a rotation must have rank 4, it has {}", c.rank(x));
  const Dim& depth = x->shape()[3];
  if (!depth.known()) c.unsupported("the width of a head must be known");
  const int64_t width = rotation.width > 0 ? rotation.width : depth.value(), half = width / 2;
  c.check(width % 2 == 0 && width <= depth.value(), "{} of {} elements cannot turn in pairs", width,
          depth.value());
  const auto part = [&](Value* from, int64_t start, int64_t end, int64_t step) {
    return c.add(
        "slice", {from},
        {{"starts", Ints{start}}, {"ends", Ints{end}}, {"axes", Ints{3}}, {"steps", Ints{step}}});
  };
  const auto angles = [&](Value* cache) {
    const Dim& last = cache->shape().back();
    c.check(!last.known() || last.is(half), "the caches have {} angles a place, {} are needed",
            last.str(), half);
    int64_t axis = static_cast<int64_t>(rotation.heads_axis);
    if (c.rank(cache) == 2) --axis;  // without a batch
    return c.add("unsqueeze", {cache}, {{"axes", Ints{axis}}});
  };
  cos = angles(cos);
  sin = angles(sin);
  const bool pairs = rotation.interleaved;
  Value* a = pairs ? part(x, 0, width, 2) : part(x, 0, half, 1);
  Value* b = pairs ? part(x, 1, width, 2) : part(x, half, width, 1);
  Value* real = c.add("sub", {c.add("mul", {cos, a}), c.add("mul", {sin, b})});
  Value* imaginary = c.add("add", {c.add("mul", {sin, a}), c.add("mul", {cos, b})});
  Values parts;
  if (pairs) {
    Value* both_parts = c.add("stack", {real, imaginary}, {{"axis", -1}});
    parts = {c.add("reshape", {both_parts}, {{"shape", Ints{0, 0, 0, width}}})};
  } else {
    parts = {real, imaginary};
  }
  if (width < depth.value()) parts.push_back(part(x, width, depth.value(), 1));
  return parts.size() == 1 ? parts[0] : c.add("concat", parts, {{"axis", 3}});
}

}  // namespace anymps::onnx
