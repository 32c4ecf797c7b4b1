// SPDX-License-Identifier: Apache-2.0
// Strided loops made simple: operands over one shape, with the axes in the order in which the first
// operand lies in memory and with axes merged that all operands step through as one.
#pragma once

#include <algorithm>
#include <vector>

#include "base/shape.h"

namespace anymps::cpu {

struct Loops {
  Shape extents;                 // outermost first; none for a single element
  std::vector<Strides> strides;  // [operand][axis], in elements

  int64_t count() const { return element_count(extents); }
  // Where the operand is at the index-th step, counted with the last axis fastest.
  int64_t offset(size_t operand, int64_t index) const {
    int64_t sum = 0;
    for (size_t i = extents.size(); index != 0 && i-- > 0;) {
      sum += index % extents[i] * strides[operand][i];
      index /= extents[i];
    }
    return sum;
  }
  // An operand's step along the last axis.
  int64_t last_step(size_t operand) const { return extents.empty() ? 0 : strides[operand].back(); }
  // Calls fn(first, count) for the steps [begin, end), cut where the last axis begins again.
  template <typename Fn>
  void for_lines(int64_t begin, int64_t end, Fn&& fn) const {
    const int64_t width = extents.empty() ? 1 : extents.back();
    for (int64_t count; begin < end; begin += count) {
      count = std::min(end - begin, width - begin % width);
      fn(begin, count);
    }
  }
};

// `strides[k]` are operand k's strides over `shape`. Operand 0 decides the order of the axes.
Loops make_loops(const Shape& shape, std::vector<Strides> strides);

// The same in the order given, so that operands are visited in row-major order of `shape`.
Loops merge_loops(const Shape& shape, std::vector<Strides> strides);

}  // namespace anymps::cpu
