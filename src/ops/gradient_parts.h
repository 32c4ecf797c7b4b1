// SPDX-License-Identifier: Apache-2.0
// What the gradients of several families are made of: axes as attributes give them, conjugates,
// products of matrices, moves undone.
#pragma once

#include <numeric>
#include <optional>
#include <vector>

#include "ops/gradient.h"
#include "ops/shape_rules.h"

namespace anymps {

inline std::vector<int64_t> axes_from(int64_t first, int64_t rank) {
  std::vector<int64_t> axes(rank > first ? rank - first : 0);
  std::iota(axes.begin(), axes.end(), first);
  return axes;
}

// The attribute `axis`, counted from the front.
inline int64_t axis_of(GradientContext& ctx, const char* attr = "axis") {
  const int64_t axis = ctx.attrs().i(attr);
  return axis < 0 ? axis + ctx.x().rank() : axis;
}

// The same from input i if it is there.
inline int64_t known_axis(GradientContext& ctx, size_t i, const Term& x) {
  int64_t axis = ctx.attrs().i("axis");
  if (ctx.has(i)) {
    const auto& content = ctx.x(i).type().content;
    if (!content || content->size() != 1 || !(*content)[0].known())
      ctx.refuse("its axis is not known");
    axis = (*content)[0].value();
  }
  return axis < 0 ? axis + x.rank() : axis;
}

// The axes of a reduction, counted from the front.
inline std::vector<int64_t> reduced_axes(GradientContext& ctx) {
  const std::optional<std::vector<int64_t>> given = ctx.ints(1, "axes");
  if (!given) ctx.refuse("its axes are not known");
  if (given->empty() && ctx.attrs().s("empty_axes") == "all") return axes_from(0, ctx.x().rank());
  return normalize_axes(*given, ctx.x().rank(), ctx.op().name.c_str());
}

// All axes but one.
inline std::vector<int64_t> axes_without(int64_t axis, int64_t rank) {
  std::vector<int64_t> axes;
  for (int64_t i = 0; i < rank; ++i)
    if (i != axis) axes.push_back(i);
  return axes;
}

// The gradient of a real loss to a complex x is dloss/d(Re x) + i dloss/d(Im x). Through a function
// with a complex slope it comes back by the slope's conjugate. Real numbers stay as they are.
inline Term conjugated(const Term& value) {
  return is_complex(value.dtype()) ? value.op("conjugate") : value;
}

inline Term matrix_product(const Term& a, const Term& b, bool transpose_a, bool transpose_b,
                           double alpha = 1) {
  return a.ctx().add(
      "matmul", {a, b},
      {{"transpose_a", transpose_a}, {"transpose_b", transpose_b}, {"alpha", alpha}});
}

// The attributes of the node that `op` has too.
inline NamedAttrs shared_attrs(GradientContext& ctx, const char* op) {
  NamedAttrs attrs;
  for (const NamedAttr& attr : ctx.attrs().named())
    if (get_op(op).attr_index(attr.name) >= 0) attrs.push_back(attr);
  return attrs;
}

// The way back for ops that move elements of their first input in any manner: adds each element of
// dy to the element of x (counted in row-major order) that `places` names.
Term move_back(GradientContext& ctx, const Term& places, const Term& dy);
// The same for an op that takes integers too: moving the numbers 0, 1, … instead of x's elements
// tells where each element of y came from.
Term move_back(GradientContext& ctx);

// Ops that end in an activation (matmul, conv) are differentiated as the op without it and the
// activation's own op behind it. True when the node had an activation and its gradients have been
// said; false when it has none.
bool through_activation(GradientContext& ctx, const char* alpha, const char* beta);

}  // namespace anymps
