// SPDX-License-Identifier: Apache-2.0
// Windows that are walked over up to three axes, forwards or backwards: which element of the source
// each tap meets.
#pragma once

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <span>

#include "drivers/cpu/layers/convolution.h"

namespace anymps::cpu {

using Three = std::array<int64_t, 3>;  // depth, height, width

inline Three lifted(std::span<const int64_t> values, int64_t missing) {
  Three result{missing, missing, missing};
  std::copy(values.begin(), values.end(),
            result.end() - static_cast<std::ptrdiff_t>(values.size()));
  return result;
}

inline int64_t volume_of(const Three& t) { return t[0] * t[1] * t[2]; }

inline Three place_of(int64_t flat, const Three& extents) {
  return {flat / (extents[1] * extents[2]), flat / extents[2] % extents[1], flat % extents[2]};
}

// Which element of the source tap `t` of the window at pixel `p` meets, axis by axis:
// (p * step + first + t * tap) / part, if that is whole and inside.
struct Walk {
  Three pixels, source, taps;
  Three step, first, tap, part;
  Three strides;  // of the source

  static Walk forward(const Window& window, const Shape& from, const Shape& to,
                      std::span<const int64_t> strides) {
    Walk walk = common(window, from, to, strides);
    walk.step = lifted(window.strides, 1);
    walk.first = lifted(window.pads_begin, 0);
    for (int64_t& pad : walk.first) pad = -pad;
    walk.tap = lifted(window.dilations, 1);
    walk.part = {1, 1, 1};
    return walk;
  }
  static Walk backward(const Window& window, const Shape& from, const Shape& to,
                       std::span<const int64_t> strides) {
    Walk walk = common(window, from, to, strides);
    walk.step = {1, 1, 1};
    walk.first = lifted(window.pads_begin, 0);
    walk.tap = lifted(window.dilations, 1);
    for (int64_t& dilation : walk.tap) dilation = -dilation;
    walk.part = lifted(window.strides, 1);
    return walk;
  }
  // The source's index along an axis, or -1.
  int64_t along(size_t axis, int64_t pixel, int64_t t) const {
    const int64_t at = pixel * step[axis] + first[axis] + t * tap[axis];
    if (at < 0 || at % part[axis] != 0) return -1;
    return at / part[axis] < source[axis] ? at / part[axis] : -1;
  }
  // Where that is in the source; strides, and so places, may be negative.
  static constexpr int64_t kOutside = std::numeric_limits<int64_t>::min();
  int64_t offset(const Three& pixel, const Three& t) const {
    int64_t sum = 0;
    for (size_t axis = 0; axis < 3; ++axis) {
      const int64_t at = along(axis, pixel[axis], t[axis]);
      if (at < 0) return kOutside;
      sum += at * strides[axis];
    }
    return sum;
  }

 private:
  static Walk common(const Window& window, const Shape& from, const Shape& to,
                     std::span<const int64_t> strides) {
    Walk walk;
    walk.pixels = lifted(convolution::spatial_of(to), 1);
    walk.source = lifted(convolution::spatial_of(from), 1);
    walk.taps = lifted(window.kernel, 1);
    walk.strides = lifted(strides, 0);
    return walk;
  }
};

inline std::span<const int64_t> spatial_strides(const TensorDesc& desc) {
  return {desc.strides.data() + 2, desc.strides.size() - 2};
}

// The distance of pixels that follow each other; nothing if it is not the same for all.
inline std::optional<int64_t> pixel_stride(const TensorDesc& desc) {
  for (size_t i = 2; i + 1 < desc.shape.size(); ++i)
    if (desc.shape[i] > 1 && desc.strides[i] != desc.strides[i + 1] * desc.shape[i + 1])
      return std::nullopt;
  return desc.shape.size() > 2 ? desc.strides.back() : 0;
}

// How many slabs of equal height the pixels are cut into, so that what is gathered for one, of
// `bytes` for all, stays small.
inline int64_t slabs_of(const Walk& walk, int64_t bytes) {
  constexpr int64_t kSlabBytes = 16 << 20;
  const int64_t lines = walk.pixels[0] > 1 ? walk.pixels[0] : walk.pixels[1];
  int64_t slabs = 1;
  while (slabs < lines && (lines % slabs != 0 || bytes / slabs > kSlabBytes)) ++slabs;
  return slabs;
}

}  // namespace anymps::cpu
