// SPDX-License-Identifier: Apache-2.0
// Ops whose axis, or another single integer, is an attribute or comes as a tensor of one element.
#pragma once

#include "ops/infer.h"

namespace anymps {

// The integer if it is known: from input i when there is one, else from the attribute.
inline std::optional<int64_t> known_int(const InferContext& ctx, size_t i, const char* attr) {
  if (!ctx.has(i)) return ctx.attrs.i(attr);
  const char* name = ctx.op.inputs[i].name.c_str();
  if (ctx.type(i).ranked) {
    const Dims& shape = ctx.shape(i);
    ctx.check(shape.empty() || (shape.size() == 1 && (!shape[0].known() || shape[0].is(1))),
              "{} must be a scalar, it has the shape {}", name, to_string(shape));
  }
  const Dims* content = ctx.content(i);
  if (!content || content->size() != 1 || !(*content)[0].known()) return std::nullopt;
  return (*content)[0].value();
}

// The same for an axis of input `of`, in [0, rank).
inline std::optional<int64_t> known_axis(const InferContext& ctx, size_t i, size_t of) {
  const std::optional<int64_t> axis = known_int(ctx, i, "axis");
  if (!axis) return std::nullopt;
  const int64_t rank = ctx.rank(of);
  ctx.check(*axis >= -rank && *axis < rank, "axis {} is out of range for rank {}", *axis, rank);
  return *axis < 0 ? *axis + rank : *axis;
}

}  // namespace anymps
