// SPDX-License-Identifier: Apache-2.0
// What elements weigh in a value between them, and how the weights move with its place.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace anymps {

// Cubic interpolation with coefficient a, of an element at distance x >= 0.
inline double cubic_weight(double x, double a) {
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}
inline double cubic_slope(double x, double a) {
  if (x <= 1) return (3 * (a + 2) * x - 2 * (a + 3)) * x;
  return x < 2 ? (3 * a * x - 10 * a) * x + 8 * a : 0;
}

// A neighbour of a place in a plane. The slopes are the weight's along the rows and the columns.
struct PlaneCorner {
  int64_t row = 0, column = 0;
  double weight = 0, row_slope = 0, column_slope = 0;
  bool inside = false;  // of the plane
};

// The four neighbours of (y, x), for a plane that is 0 outside; none is inside if the place is not
// within 1 of an element.
inline std::array<PlaneCorner, 4> plane_corners(int64_t height, int64_t width, double y, double x) {
  std::array<PlaneCorner, 4> corners;
  if (!(y > -1 && y < static_cast<double>(height) && x > -1 && x < static_cast<double>(width)))
    return corners;
  const double top = std::floor(y), left = std::floor(x);
  for (size_t k = 0; k < 4; ++k) {
    const bool down = k & 2, right = k & 1;
    const double wy = down ? y - top : 1 - (y - top), wx = right ? x - left : 1 - (x - left);
    PlaneCorner& corner = corners[k];
    corner.row = static_cast<int64_t>(top) + down;
    corner.column = static_cast<int64_t>(left) + right;
    corner.inside =
        corner.row >= 0 && corner.row < height && corner.column >= 0 && corner.column < width;
    corner.weight = wy * wx;
    corner.row_slope = down ? wx : -wx;
    corner.column_slope = right ? wy : -wy;
  }
  return corners;
}

}  // namespace anymps
