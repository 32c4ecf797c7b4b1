// SPDX-License-Identifier: Apache-2.0
// Parts and borders of axes: slice, split, reverse, pad, trilu.
#include <algorithm>

#include "drivers/reference/elementwise/elementwise.h"
#include "drivers/reference/move.h"
#include "ops/shape_rules.h"
#include "semantics/border.h"
#include "semantics/elements.h"

namespace anymps {

namespace {

void store_number(const View& view, int64_t offset, double number) {
  anymps::store_number(view.dtype, number,
                       view.data + offset * static_cast<int64_t>(size_of(view.dtype)));
}

}  // namespace

REFERENCE(slice) {
  const View &x = args.in[0], &y = args.out[0];
  const auto ranges = slice_ranges(x.shape(), args.ints(1, "starts"), args.ints(2, "ends"),
                                   args.ints(3, "axes"), args.ints(4, "steps"), "slice");
  require_shape(args, x.rank() == y.rank());
  for (size_t i = 0; i < ranges.size(); ++i) require_shape(args, ranges[i].length == y.shape()[i]);
  move_elements(x, y, [&](const Shape& index) {
    Shape source = index;
    for (size_t i = 0; i < index.size(); ++i)
      source[i] = ranges[i].start + index[i] * ranges[i].step;
    return source;
  });
}

REFERENCE(split) {
  const View& x = args.in[0];
  const int64_t axis = normalize_axis(args.attrs.i("axis"), x.rank(), "split");
  int64_t first = 0;
  for (const View& y : args.out) {
    require_shape(args, y.rank() == x.rank() && y.extent(axis) <= x.extent(axis) - first);
    move_elements(x, y, [&](const Shape& index) {
      Shape source = index;
      source[axis] += first;
      return source;
    });
    first += y.extent(axis);
  }
}

REFERENCE(reverse) {
  const View &x = args.in[0], &y = args.out[0];
  const auto axes = normalize_axes(args.attrs.ints("axes"), x.rank(), "reverse");
  require_shape(args, x.shape() == y.shape());
  move_elements(x, y, [&](const Shape& index) {
    Shape source = index;
    for (size_t i = 0; i < index.size(); ++i)
      if (axes.empty() || std::count(axes.begin(), axes.end(), static_cast<int64_t>(i)))
        source[i] = x.shape()[i] - 1 - index[i];
    return source;
  });
}

REFERENCE(pad) {
  const View &x = args.in[0], &y = args.out[0];
  std::vector<int64_t> pads = args.ints(1, "pads");
  const size_t rank = x.rank();
  if (args.has(3)) {
    const auto axes = normalize_axes(args.ints(3, "pads"), x.rank(), "pad");
    require_shape(args, pads.size() == 2 * axes.size());
    std::vector<int64_t> all(2 * rank);
    for (size_t i = 0; i < axes.size(); ++i) {
      all[axes[i]] = pads[i];
      all[static_cast<size_t>(axes[i]) + rank] = pads[i + axes.size()];
    }
    pads = all;
  }
  if (pads.empty()) pads.resize(2 * rank);
  require_shape(args, pads.size() == 2 * rank && y.shape().size() == rank);
  const std::string& mode = args.attrs.s("mode");
  for_each_index(y.shape(), [&](const Shape& index) {
    Shape source = index;
    bool inside = true, negated = false;
    for (size_t i = 0; i < rank; ++i) {
      const int64_t extent = x.shape()[i];
      source[i] -= pads[i];
      if (source[i] >= 0 && source[i] < extent) continue;
      inside = false;
      if (mode == "constant") continue;
      require_shape(args, extent > 0);
      const auto element = border_element(mode, source[i], extent);
      source[i] = element->place;
      negated ^= element->negated;
    }
    if (inside || mode != "constant")
      move_element(y, y.offset(index), x, x.offset(source));
    else if (args.has(2))
      move_element(y, y.offset(index), args.in[2], 0);
    else
      store_number(y, y.offset(index), args.attrs.f("value"));
    if (negated)
      dispatch<kNumber>(y.dtype, [&]<typename T>() {
        T& element = y.at<T>(index);
        element = narrow<T>(scalar::neg(widen(element)));
      });
  });
}

REFERENCE(trilu) {
  const View &x = args.in[0], &y = args.out[0];
  require_shape(args, x.shape() == y.shape() && x.rank() >= 2);
  const int64_t k = args.has(1) ? load_int(args.in[1], 0) : args.attrs.i("k");
  const bool upper = args.attrs.b("upper");
  for_each_index(y.shape(), [&](const Shape& index) {
    const int64_t diagonal = index[index.size() - 1] - index[index.size() - 2];
    if (upper ? diagonal >= k : diagonal <= k)
      move_element(y, y.offset(index), x, x.offset(index));
    else
      store_number(y, y.offset(index), 0);
  });
}

}  // namespace anymps
