// SPDX-License-Identifier: Apache-2.0
// The exponentials of a line of numbers and their sum, moved by the highest number so that none
// overflows: what softmax, its logarithm, their gradients and losses are made of.
#pragma once

#include <cmath>
#include <cstdint>

namespace anymps {

struct SoftmaxLine {
  double highest = 0, sum = 0;  // the sum is that of e^(x - highest)

  double log_sum() const { return highest + std::log(sum); }  // log of the sum of e^x
};

// Calls store(i, e^(x - highest)) for each of `length` >= 1 numbers, `step` elements apart.
template <typename T, typename Store>
SoftmaxLine softmax_line(const T* x, int64_t step, int64_t length, Store&& store) {
  SoftmaxLine line{static_cast<double>(x[0])};
  for (int64_t i = 1; i < length; ++i)
    if (const auto value = static_cast<double>(x[i * step]); line.highest < value)
      line.highest = value;
  for (int64_t i = 0; i < length; ++i) {
    const double value = std::exp(static_cast<double>(x[i * step]) - line.highest);
    line.sum += value;
    store(i, value);
  }
  return line;
}

// The same in place.
template <typename Line>
SoftmaxLine softmax_line(Line& line) {
  return softmax_line(line.data(), 1, std::ssize(line),
                      [&](int64_t i, double value) { line[i] = value; });
}

}  // namespace anymps
