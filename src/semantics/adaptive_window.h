// SPDX-License-Identifier: Apache-2.0
// The windows of pooling to a given size, over one to three spatial axes.
#pragma once

#include <cstdint>

#include "base/shape.h"

namespace anymps {

struct AdaptiveGrid {
  // x is [N, C, spatial…], or [N, spatial…, C] with the channels last.
  AdaptiveGrid(const Shape& x, const std::vector<int64_t>& output_size, bool channels_last)
      : outer(x[0] * (channels_last ? 1 : x[1])), inner(channels_last ? x[x.size() - 1] : 1) {
    const size_t first = channels_last ? 1 : 2, count = output_size.size();
    for (size_t i = 0; i < count; ++i) {
      in[3 - count + i] = x[first + i];
      out[3 - count + i] = output_size[i];
    }
  }
  int64_t places() const { return in[0] * in[1] * in[2]; }  // of x's spatial axes
  int64_t windows() const { return out[0] * out[1] * out[2]; }

  // Where window i of an axis begins and ends.
  int64_t begin(size_t axis, int64_t i) const { return i * in[axis] / out[axis]; }
  int64_t end(size_t axis, int64_t i) const {
    return ((i + 1) * in[axis] + out[axis] - 1) / out[axis];
  }
  // Window w, counted in row-major order: calls fn(place, n) for runs of n places.
  template <typename Fn>
  void each_run(int64_t w, Fn&& fn) const {
    const int64_t k = w % out[2], j = w / out[2] % out[1], i = w / out[2] / out[1];
    const int64_t first = begin(2, k), n = end(2, k) - first;
    for (int64_t a = begin(0, i); a < end(0, i); ++a)
      for (int64_t b = begin(1, j); b < end(1, j); ++b) fn((a * in[1] + b) * in[2] + first, n);
  }
  template <typename Fn>
  void each(int64_t w, Fn&& fn) const {
    each_run(w, [&](int64_t place, int64_t n) {
      for (int64_t i = 0; i < n; ++i) fn(place + i);
    });
  }
  int64_t size(int64_t w) const {
    int64_t size = 0;
    each_run(w, [&](int64_t, int64_t n) { size += n; });
    return size;
  }

  int64_t outer, inner;
  int64_t in[3] = {1, 1, 1}, out[3] = {1, 1, 1};
};

}  // namespace anymps
