// SPDX-License-Identifier: Apache-2.0
// The innermost part of depthwise convolutions over one plane, whose borders are written out.
#pragma once

#include <cstdint>

namespace anymps::cpu {

// Element [r, c] of y meets x[r * x_row + c + offsets[k]] for each tap k. From any such place on, a
// vector may be read; what lies beyond the row does not count.
struct PlaneWindow {
  int64_t rows = 0, columns = 0, taps = 0;
  const float* x = nullptr;
  int64_t x_row = 0;
  const int64_t* offsets = nullptr;
};

// y[r, c] = bias + sum over k of w[k] * x[…]
void run_plane(const PlaneWindow& window, const float* w, float bias, float* y);
// sums[k] += sum over r, c of dy[r, c] * x[…]
void run_plane_taps(const PlaneWindow& window, const float* dy, double* sums);

}  // namespace anymps::cpu
