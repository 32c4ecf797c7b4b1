// SPDX-License-Identifier: Apache-2.0
// Reductions of segments of an axis, and their gradients, one element at a time. A is the type that
// is computed in.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "base/error.h"

namespace anymps {

enum class SegmentMode { kSum, kMean, kMax, kMin, kProd };

// In the enum's order.
inline std::vector<std::string> segment_mode_choices() {
  return {"sum", "mean", "max", "min", "prod"};
}
inline SegmentMode parse_segment_mode(const std::string& mode) {
  const std::vector<std::string> choices = segment_mode_choices();
  size_t i = 0;
  while (i + 1 < choices.size() && choices[i] != mode) ++i;
  return static_cast<SegmentMode>(i);
}

// What a reduction without an initial value starts from.
template <typename A>
A segment_start(SegmentMode mode) {
  constexpr A kInfinity = std::numeric_limits<A>::infinity();
  if (mode == SegmentMode::kMax) return -kInfinity;
  if (mode == SegmentMode::kMin) return kInfinity;
  return mode == SegmentMode::kProd ? A(1) : A(0);
}

// NaN wins.
template <typename A>
A segment_join(SegmentMode mode, A so_far, A x) {
  switch (mode) {
    case SegmentMode::kMax:
      return std::isnan(x) || x > so_far ? x : so_far;
    case SegmentMode::kMin:
      return std::isnan(x) || x < so_far ? x : so_far;
    case SegmentMode::kProd:
      return so_far * x;
    default:
      return so_far + x;
  }
}

// The mean of nothing is NaN, unless it starts from a value.
template <typename A>
A segment_end(SegmentMode mode, A total, int64_t length, bool has_initial) {
  if (mode != SegmentMode::kMean || (length == 0 && has_initial)) return total;
  return length == 0 ? std::numeric_limits<A>::quiet_NaN() : total / static_cast<A>(length);
}

// Whether x is (one of) the extremum y of its segment.
template <typename A>
bool is_segment_extremum(A x, A y) {
  return std::isnan(x) || x == y;
}

// Segment `s` of `count` in a row of lengths, or of offsets, which have one more; `at` reads the
// numbers. Calls fn(s, begin, end). The lengths must fill the axis.
template <typename At, typename Fn>
void for_each_segment(const char* op, bool offsets, int64_t count, int64_t extent, const At& at,
                      const Fn& fn) {
  int64_t begin = offsets ? at(0) : 0;
  for (int64_t s = 0; s < count; ++s) {
    const int64_t number = at(offsets ? s + 1 : s);
    const bool fits = offsets ? begin >= 0 && number >= begin && number <= extent
                              : number >= 0 && number <= extent - begin;
    require(fits, "[{}] segment {} is not inside the axis of {} elements", op, s, extent);
    const int64_t end = offsets ? number : begin + number;
    fn(s, begin, end);
    begin = end;
  }
  require(offsets || begin == extent, "[{}] the lengths add up to {}, must be {}", op, begin,
          extent);
}

}  // namespace anymps
