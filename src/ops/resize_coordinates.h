// SPDX-License-Identifier: Apache-2.0
// Where an element of a resized axis comes from: shared by the kernels of every driver, so that
// they agree on each element of a nearest resize.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>

#include "base/error.h"

namespace anymps {

enum class Coordinate {
  kHalfPixel,
  kPytorchHalfPixel,
  kAlignCorners,
  kAsymmetric,
  kHalfPixelSymmetric,
};
enum class NearestRounding { kPreferFloor, kPreferCeil, kFloor, kCeil };

inline Coordinate parse_coordinate(const std::string& text) {
  if (text == "half_pixel") return Coordinate::kHalfPixel;
  if (text == "pytorch_half_pixel") return Coordinate::kPytorchHalfPixel;
  if (text == "align_corners") return Coordinate::kAlignCorners;
  if (text == "asymmetric") return Coordinate::kAsymmetric;
  if (text == "half_pixel_symmetric") return Coordinate::kHalfPixelSymmetric;
  fail(Code::kInvalidArgument, "[resize] '{}' is not a coordinate mode", text);
}

inline NearestRounding parse_nearest(const std::string& text) {
  if (text == "round_prefer_floor") return NearestRounding::kPreferFloor;
  if (text == "round_prefer_ceil") return NearestRounding::kPreferCeil;
  if (text == "floor") return NearestRounding::kFloor;
  if (text == "ceil") return NearestRounding::kCeil;
  fail(Code::kInvalidArgument, "[resize] '{}' is not a rounding of nearest", text);
}

// One axis. `scale` is output over input as the caller gave it, which need not be the exact
// quotient.
struct ResizeAxis {
  int64_t in = 1, out = 1;
  double scale = 1;
  Coordinate coordinate = Coordinate::kHalfPixel;

  // The place in the input, not clamped to it.
  double source(int64_t at) const {
    const auto x = static_cast<double>(at), n = static_cast<double>(in),
               m = static_cast<double>(out);
    switch (coordinate) {
      case Coordinate::kHalfPixel:
        return (x + 0.5) / scale - 0.5;
      case Coordinate::kPytorchHalfPixel:
        return out > 1 ? (x + 0.5) / scale - 0.5 : 0;
      case Coordinate::kAlignCorners:
        return out > 1 ? x * (n - 1) / (m - 1) : 0;
      case Coordinate::kAsymmetric:
        return x / scale;
      case Coordinate::kHalfPixelSymmetric:
        return n / 2 * (1 - m / (scale * n)) + (x + 0.5) / scale - 0.5;
    }
    return x;
  }

  int64_t nearest(int64_t at, NearestRounding rounding) const {
    const double place = source(at);
    double rounded = place;
    switch (rounding) {
      case NearestRounding::kPreferFloor:
        rounded = std::ceil(place - 0.5);
        break;
      case NearestRounding::kPreferCeil:
        rounded = std::floor(place + 0.5);
        break;
      case NearestRounding::kFloor:
        rounded = std::floor(place);
        break;
      case NearestRounding::kCeil:
        rounded = std::ceil(place);
        break;
    }
    return static_cast<int64_t>(std::clamp(rounded, 0.0, static_cast<double>(in - 1)));
  }

  // Two neighbours and the weight of the second.
  struct Linear {
    int64_t low = 0, high = 0;
    double weight = 0;
  };
  Linear linear(int64_t at) const {
    const double place = std::clamp(source(at), 0.0, static_cast<double>(in - 1));
    const auto low = static_cast<int64_t>(place);
    return {low, std::min(low + 1, in - 1), place - static_cast<double>(low)};
  }
};

}  // namespace anymps
