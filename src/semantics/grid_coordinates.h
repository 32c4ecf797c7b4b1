// SPDX-License-Identifier: Apache-2.0
// Where a sampled element lies on an axis and what it is made of: shared by the kernels of every
// driver.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "semantics/interpolation.h"

namespace anymps {

// The normalized coordinate, -1 to 1, of place `at` of an axis: to the centres of the outermost
// elements with align_corners, else to their outer edges.
inline double normalized_place(int64_t at, int64_t extent, bool align_corners) {
  const auto p = static_cast<double>(at), n = static_cast<double>(extent);
  if (!align_corners) return (2 * p + 1) / n - 1;
  return extent > 1 ? 2 * p / (n - 1) - 1 : -1;
}

// One axis of a tensor that is sampled by coordinates.
struct GridAxis {
  enum class Padding { kConstant, kBorder, kReflect, kSymmetric };
  enum class Mode { kNearest, kLinear, kCubic };
  enum class Rounding { kToEven, kPreferCeil, kPreferFloor, kFloor, kCeil };

  int64_t in = 1, out = 1;
  bool align_corners = false, normalized = true, relative = false;
  Padding padding = Padding::kConstant;
  Mode mode = Mode::kLinear;
  Rounding rounding = Rounding::kToEven;

  struct Tap {
    int64_t index = -1;  // -1: outside, where the constant is
    double weight = 0;
  };
  struct Taps {
    std::array<Tap, 4> tap;
    size_t count = 0;
    void add(int64_t index, double weight) {
      if (weight != 0) tap[count++] = {index, weight};
    }
  };

  // The same with the slope of each weight along the coordinate. Weights of 0 may have one.
  struct SlopedTap {
    int64_t index = -1;
    double weight = 0, slope = 0;
  };
  struct SlopedTaps {
    std::array<SlopedTap, 4> tap;
    size_t count = 0;
  };

  // What output element `at`, with this coordinate, is made of.
  Taps taps(double coordinate, int64_t at) const {
    Taps taps;
    double place = source(coordinate, at);
    if (mode == Mode::kNearest) {
      taps.add(inside(static_cast<int64_t>(clamped(round(place)))), 1);
      return taps;
    }
    place = clamped(place);
    const double low = std::floor(place), t = place - low;
    const auto first = static_cast<int64_t>(low);
    if (mode == Mode::kLinear) {
      taps.add(inside(first), 1 - t);
      taps.add(inside(first + 1), t);
      return taps;
    }
    for (int64_t k = -1; k <= 2; ++k)
      taps.add(inside(first + k), cubic_weight(std::abs(static_cast<double>(k) - t), kCubic));
    return taps;
  }

  SlopedTaps sloped_taps(double coordinate, int64_t at) const {
    SlopedTaps taps;
    const auto add = [&](int64_t index, double weight, double slope) {
      taps.tap[taps.count++] = {inside(index), weight, slope};
    };
    const double place = source(coordinate, at);
    if (mode == Mode::kNearest) {
      add(static_cast<int64_t>(clamped(round(place))), 1, 0);
      return taps;
    }
    const double here = clamped(place);
    const double step = source_slope() * (held(here) ? 0 : clamped_slope(place));
    const double low = std::floor(here), t = here - low;
    const auto first = static_cast<int64_t>(low);
    if (mode == Mode::kLinear) {
      add(first, 1 - t, -step);
      add(first + 1, t, step);
      return taps;
    }
    for (int64_t k = -1; k <= 2; ++k) {
      const double x = static_cast<double>(k) - t;
      add(first + k, cubic_weight(std::abs(x), kCubic),
          cubic_slope(std::abs(x), kCubic) * (x < 0 ? step : -step));
    }
    return taps;
  }

 private:
  double source(double coordinate, int64_t at) const {
    const auto n = static_cast<double>(in), m = static_cast<double>(out),
               p = static_cast<double>(at);
    if (relative) {
      const double here = !align_corners ? (p + 0.5) * n / m - 0.5
                          : out > 1      ? p * (n - 1) / (m - 1)
                                         : 0;
      return here + (normalized ? coordinate * (align_corners ? n - 1 : n) / 2 : coordinate);
    }
    if (!normalized) return coordinate;
    return align_corners ? (coordinate + 1) / 2 * (n - 1) : ((coordinate + 1) * n - 1) / 2;
  }
  double source_slope() const {
    if (!normalized) return 1;
    return static_cast<double>(align_corners ? in - 1 : in) / 2;
  }
  double low_edge() const { return padding == Padding::kReflect ? 0 : -0.5; }
  double high_edge() const {
    return static_cast<double>(in) + (padding == Padding::kReflect ? -1 : -0.5);
  }

  // A place far outside, or none at all, becomes one that an integer can hold.
  double clamped(double place) const {
    const auto n = static_cast<double>(in);
    if (std::isnan(place)) place = -2 * n - 4;
    switch (padding) {
      case Padding::kConstant:
        return std::clamp(place, -n - 4, 2 * n + 4);
      case Padding::kBorder: {
        const double edge = align_corners ? 0 : 0.5;
        if (place < -edge || place > n - 1 + edge) return std::clamp(place, 0.0, n - 1);
        return place;
      }
      default:
        return reflected(place);
    }
  }
  double reflected(double place) const {
    const double low = low_edge(), high = high_edge(), range = high - low;
    if (range <= 0 || !std::isfinite(place)) return std::max(low, 0.0);
    if (place >= low && place <= high) return place;
    const bool below = place < low;
    const double beyond = std::fmod(below ? low - place : place - high, 2 * range);
    const bool odd = beyond >= range;
    const double rest = odd ? beyond - range : beyond;
    return below != odd ? low + rest : high - rest;
  }
  // How the two move with the place: 1, -1 in a mirror, 0 where it is held.
  double clamped_slope(double place) const {
    const auto n = static_cast<double>(in);
    if (std::isnan(place)) return 0;
    if (padding == Padding::kConstant) return place > -n - 4 && place < 2 * n + 4 ? 1 : 0;
    if (padding == Padding::kBorder) {
      const double edge = align_corners ? 0 : 0.5;
      return place < -edge || place > n - 1 + edge ? 0 : 1;
    }
    const double low = low_edge(), high = high_edge(), range = high - low;
    if (range <= 0 || !std::isfinite(place)) return 0;
    if (place >= low && place <= high) return 1;
    const double beyond = std::fmod(place < low ? low - place : place - high, 2 * range);
    return beyond >= range ? 1 : -1;
  }
  // On the outermost elements lines have a bend: there, as in PyTorch, nothing moves with the
  // place.
  bool held(double here) const {
    return mode == Mode::kLinear && padding != Padding::kConstant &&
           !(here > 0 && here < static_cast<double>(in) - 1);
  }
  int64_t inside(int64_t i) const {
    if (i >= 0 && i < in) return i;
    if (padding == Padding::kConstant) return -1;
    if (padding == Padding::kBorder) return std::clamp<int64_t>(i, 0, in - 1);
    return std::clamp<int64_t>(static_cast<int64_t>(reflected(static_cast<double>(i))), 0, in - 1);
  }
  double round(double place) const {
    switch (rounding) {
      case Rounding::kToEven:
        return std::nearbyint(place);
      case Rounding::kPreferCeil:
        return std::floor(place + 0.5);
      case Rounding::kPreferFloor:
        return std::ceil(place - 0.5);
      case Rounding::kFloor:
        return std::floor(place);
      case Rounding::kCeil:
        return std::ceil(place);
    }
    return place;
  }

  static constexpr double kCubic = -0.75;
};

}  // namespace anymps
