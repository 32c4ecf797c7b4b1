// SPDX-License-Identifier: Apache-2.0
// Axes as the attributes of a node give them, for gradient functions.
#pragma once

#include <numeric>
#include <vector>

#include "ops/gradient.h"
#include "ops/shape_rules.h"

namespace anymps {

inline std::vector<int64_t> axes_from(int64_t first, int64_t rank) {
  std::vector<int64_t> axes(static_cast<size_t>(rank > first ? rank - first : 0));
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

}  // namespace anymps
