// SPDX-License-Identifier: Apache-2.0
// Checks on the shapes of an op's inputs that several families share. A symbol is taken to agree
// with anything: inference runs again, and the check with it, when the numbers are known.
#pragma once

#include "ops/infer.h"

namespace anymps {

inline bool may_equal(const Dim& a, const Dim& b) { return !a.known() || !b.known() || a == b; }

inline bool may_equal(const Dims& a, const Dims& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i)
    if (!may_equal(a[i], b[i])) return false;
  return true;
}

// Input i, if it is there and ranked, must have this shape.
inline void expect_shape(const InferContext& ctx, size_t i, const Dims& expected) {
  if (!ctx.has(i) || !ctx.type(i).ranked) return;
  ctx.check(may_equal(ctx.shape(i), expected), "input '{}' has shape {}, must be {}",
            ctx.op.inputs[i].name, to_string(ctx.shape(i)), to_string(expected));
}

// Input i, if it is there and ranked, must broadcast to this shape without making it larger.
inline void expect_broadcast(const InferContext& ctx, size_t i, const Dims& to) {
  if (!ctx.has(i) || !ctx.type(i).ranked) return;
  const Dims& shape = ctx.shape(i);
  bool fits = shape.size() <= to.size();
  for (size_t k = 0; fits && k < shape.size(); ++k)
    fits = shape[k].is(1) || may_equal(shape[k], to[to.size() - shape.size() + k]);
  ctx.check(fits, "input '{}' has shape {}, which does not broadcast to {}", ctx.op.inputs[i].name,
            to_string(shape), to_string(to));
}

inline void expect_rank(const InferContext& ctx, size_t i, int64_t low, int64_t high) {
  const int64_t rank = ctx.rank(i);
  if (low == high)
    ctx.check(rank == low, "input '{}' has shape {}, must have rank {}", ctx.op.inputs[i].name,
              to_string(ctx.shape(i)), low);
  ctx.check(rank >= low && rank <= high, "input '{}' has shape {}, must have rank {} to {}",
            ctx.op.inputs[i].name, to_string(ctx.shape(i)), low, high);
}

// The shape of input i. Where not even its rank is known, but the op takes `rank` axes (its weights
// tell), these have extents of their own: what comes after the op then knows its rank.
inline Dims shape_of_rank(const InferContext& ctx, size_t i, size_t rank) {
  if (ctx.type(i).ranked) return ctx.shape(i);
  Dims shape;
  for (size_t axis = 0; axis < rank; ++axis)
    shape.push_back(ctx.fresh(fmt::format("{}.{}", ctx.op.inputs[i].name, axis)));
  return shape;
}

// Input i, if it is there and ranked, must have one element.
inline void expect_one_element(const InferContext& ctx, size_t i) {
  if (!ctx.has(i) || !ctx.type(i).ranked) return;
  for (const Dim& dim : ctx.type(i).shape)
    ctx.check(!dim.known() || dim.is(1), "{} must have one element, it has the shape {}",
              ctx.op.inputs[i].name, to_string(ctx.type(i).shape));
}

// The known one of two extents that must agree.
inline const Dim& known_of(const Dim& a, const Dim& b) { return a.known() ? a : b; }

}  // namespace anymps
