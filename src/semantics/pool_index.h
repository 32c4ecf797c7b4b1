// SPDX-License-Identifier: Apache-2.0
// The numbers by which max_pool tells where an element came from, and back again: flat over the
// whole tensor, over its innermost axes, or over the window's own elements.
#pragma once

#include <algorithm>

#include "semantics/signal/window.h"

namespace anymps {

// How places are counted.
struct PoolIndexRule {
  bool local = false;         // in the window, not in the tensor
  bool column_major = false;  // the spatial axes from the last to the first
  size_t axes = 0;            // innermost axes that are counted over; 0: all
};

class PoolIndex {
 public:
  // `x` is the shape of what was pooled.
  PoolIndex(const PoolIndexRule& rule, const TensorAxes& axes, const Shape& x, const Window& window)
      : axes_(axes),
        x_(x),
        extents_(x),
        window_(window),
        first_(rule.axes == 0 ? 0 : x.size() - std::min(x.size(), rule.axes)),
        column_major_(rule.column_major),
        local_(rule.local) {
    if (local_)
      for (size_t i = 0; i < x.size(); ++i)
        extents_[i] = spatial(i) ? window.kernel[i - axes_.spatial] : 1;
    for (size_t i = first_; i < extents_.size(); ++i) count_ *= extents_[i];
  }

  // How many leading axes of an element are always those of the output that it is decoded for.
  size_t own_axes() const { return local_ ? std::max(first_, axes_.spatial) : first_; }

  // Of the element at `from`, which is element `tap` of its window.
  int64_t encode(const Shape& from, const Shape& tap) const {
    int64_t index = 0;
    for (size_t i = first_; i < from.size(); ++i) {
      const size_t axis =
          column_major_ && i >= axes_.spatial ? from.size() + axes_.spatial - 1 - i : i;
      const int64_t place = !local_ ? from[axis] : spatial(axis) ? tap[axis - axes_.spatial] : 0;
      index = index * extents_[axis] + place;
    }
    return index;
  }

  // The element of x that `index` names, for output `at`; false when it is not inside x.
  bool decode(int64_t index, const Shape& at, Shape& from) const {
    from = at;
    if (index < 0 || index >= count_) return false;
    for (size_t i = from.size(); i-- > first_;) {
      const size_t axis =
          column_major_ && i >= axes_.spatial ? from.size() + axes_.spatial - 1 - i : i;
      const int64_t place = index % extents_[axis];
      index /= extents_[axis];
      if (!local_)
        from[axis] = place;
      else if (spatial(axis))
        from[axis] = at[axis] * window_.strides[axis - axes_.spatial] +
                     place * window_.dilations[axis - axes_.spatial] -
                     window_.pads_begin[axis - axes_.spatial];
    }
    for (size_t i = 0; i < from.size(); ++i)
      if (from[i] < 0 || from[i] >= x_[i]) return false;
    return true;
  }

 private:
  bool spatial(size_t axis) const {
    return axis >= axes_.spatial && axis < axes_.spatial + axes_.count;
  }

  TensorAxes axes_;
  Shape x_, extents_;
  Window window_;
  size_t first_ = 0;
  int64_t count_ = 1;
  bool column_major_ = false, local_ = false;
};

}  // namespace anymps
