// SPDX-License-Identifier: Apache-2.0
// The numbers by which max_pool tells where an element came from, and back again: flat over the
// whole tensor, over its innermost axes, or over the window's own elements.
#pragma once

#include <string>
#include <vector>

#include "ops/layers/window.h"

namespace anymps {

inline std::vector<std::string> pool_index_choices() {
  return {"tensor",    "column_major", "global_1d", "global_2d", "global_3d",
          "global_4d", "local_1d",     "local_2d",  "local_3d",  "local_4d"};
}

class PoolIndex {
 public:
  // `x` is the shape of what was pooled.
  PoolIndex(const Attrs& attrs, const Shape& x, const Window& window)
      : op_(attrs.op()->name), axes_(tensor_axes(attrs, x.size())), x_(x), window_(window) {
    const std::string& mode = attrs.s("indices");
    column_major_ = mode == "column_major";
    local_ = mode.starts_with("local");
    first_ = column_major_ || mode == "tensor" ? 0 : x.size() - std::min(x.size(), digit(mode));
    if (first_ == 0 && mode != "tensor" && !column_major_)
      require(digit(mode) <= x.size(), "[{}] indices {} of a tensor of rank {}", op_, mode,
              x.size());
    extents_ = x;
    if (local_)
      for (size_t i = 0; i < x.size(); ++i)
        extents_[i] = spatial(i) ? window.kernel[i - axes_.spatial] : 1;
    count_ = 1;
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
  static size_t digit(const std::string& mode) {
    const size_t at = mode.find('_');
    return at == std::string::npos || at + 1 >= mode.size()
               ? 0
               : static_cast<size_t>(mode[at + 1] - '0');
  }
  bool spatial(size_t axis) const {
    return axis >= axes_.spatial && axis < axes_.spatial + axes_.count;
  }

  std::string op_;
  TensorAxes axes_;
  Shape x_, extents_;
  Window window_;
  size_t first_ = 0;
  int64_t count_ = 1;
  bool column_major_ = false, local_ = false;
};

// The spatial extents of a tensor, and its window.
inline Shape spatial_extents(const Attrs& attrs, const Shape& x) {
  const TensorAxes axes = tensor_axes(attrs, x.size());
  Shape spatial;
  for (size_t i = 0; i < axes.count; ++i) spatial.push_back(x[axes.spatial + i]);
  return spatial;
}
inline Window pool_window(const Attrs& attrs, const Shape& x) {
  const std::vector<int64_t>& kernel = attrs.ints("kernel");
  return resolve_window(attrs, spatial_extents(attrs, x), Shape(kernel.begin(), kernel.end()));
}

}  // namespace anymps
