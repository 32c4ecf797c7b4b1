// SPDX-License-Identifier: Apache-2.0
// Windows of pooling whose number is given instead of their size: equal parts of an axis, or
// windows of one size at random distances.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace anymps {

using WindowSpans = std::vector<std::pair<int64_t, int64_t>>;  // [first, last), for each output

// The parts of `in` elements in `out` windows, which cover all and overlap where they must.
inline WindowSpans adaptive_spans(int64_t in, int64_t out) {
  WindowSpans spans;
  for (int64_t i = 0; i < out; ++i) {
    const int64_t whole = in / out, rest = in % out;  // i * in may not fit
    const int64_t first = i * whole + i * rest / out;
    spans.emplace_back(first, (i + 1) * whole + ((i + 1) * rest + out - 1) / out);
  }
  return spans;
}

// Windows of `size` elements; F is the type that the sample, in [0, 1), is given in.
template <typename F>
WindowSpans fractional_spans(int64_t in, int64_t out, int64_t size, F sample) {
  WindowSpans spans;
  const F step = out > 1 ? static_cast<F>(in - size) / static_cast<F>(out - 1) : F{0};
  for (int64_t i = 0; i < out; ++i) {
    int64_t first = in - size;
    if (i + 1 < out)
      first = static_cast<int64_t>((static_cast<F>(i) + sample) * step) -
              static_cast<int64_t>(sample * step);
    first = first < 0 ? 0 : first > in - size ? in - size : first;  // a sample out of its range
    spans.emplace_back(first, first + size);
  }
  return spans;
}

}  // namespace anymps
