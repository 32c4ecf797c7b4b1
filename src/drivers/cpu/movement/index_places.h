// SPDX-License-Identifier: Apache-2.0
// Where indices point: looked up in runs, with one check for all of them.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/error.h"

namespace anymps::cpu {

// An axis that indices name places on.
struct IndexedAxis {
  int64_t axis = 0, extent = 0, stride = 0;
};

inline constexpr int64_t kPlaces = 256;  // looked up at once

// Fails for the first of n indices, `step` apart, that names no place.
template <typename Index>
void check_indices(const char* op, const Index* indices, int64_t step, int64_t n,
                   const IndexedAxis& axis) {
  Index low = 0, high = 0;
  for (int64_t i = 0; i < n; ++i) {
    low = std::min(low, indices[i * step]);
    high = std::max(high, indices[i * step]);
  }
  if (n == 0 || (axis.extent > 0 && low >= -axis.extent && high < axis.extent)) [[likely]]
    return;
  for (int64_t i = 0; i < n; ++i)
    if (const int64_t index = indices[i * step]; index < -axis.extent || index >= axis.extent)
      fail(Code::kInvalidArgument, "[{}] index {} is out of range for axis {} of extent {}", op,
           index, axis.axis, axis.extent);
}

// The places that n indices name, `step` apart; plus i * more for the i-th. Negative ones count
// from the end.
template <typename Index>
void look_up(const char* op, const Index* indices, int64_t step, int64_t n, const IndexedAxis& axis,
             int64_t more, int64_t* places) {
  const int64_t extent = axis.extent, stride = axis.stride;
  bool outside = false;
  for (int64_t i = 0; i < n; ++i) {
    int64_t index = indices[i * step];
    index += index < 0 ? extent : 0;
    outside |= static_cast<uint64_t>(index) >= static_cast<uint64_t>(extent);
    places[i] = index * stride + i * more;
  }
  if (outside) [[unlikely]]
    check_indices(op, indices, step, n, axis);
}

}  // namespace anymps::cpu
