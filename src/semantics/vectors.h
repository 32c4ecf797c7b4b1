// SPDX-License-Identifier: Apache-2.0
// Products of plain vectors, written so that the compiler uses vector instructions without being
// allowed to reorder sums.
#pragma once

#include <cstdint>

namespace anymps {

template <typename T>
T dot(const T* a, const T* b, int64_t n) {
  constexpr int64_t kLanes = 16;
  T lanes[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (int64_t k = 0; k < kLanes; ++k) lanes[k] += a[i + k] * b[i + k];
  T sum = 0;
  for (; i < n; ++i) sum += a[i] * b[i];
  for (const T lane : lanes) sum += lane;
  return sum;
}

// to += factor * from
template <typename T>
void add_scaled(T* __restrict to, T factor, const T* __restrict from, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i] += factor * from[i];
}

}  // namespace anymps
