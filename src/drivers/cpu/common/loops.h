// SPDX-License-Identifier: Apache-2.0
// Strided loops made simple: operands over one shape, with the axes in the order in which the first
// operand lies in memory and with axes merged that all operands step through as one.
#pragma once

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
};

// `strides[k]` are operand k's strides over `shape`. Operand 0 decides the order of the axes.
Loops make_loops(const Shape& shape, std::vector<Strides> strides);

// The same in the order given, so that operands are visited in row-major order of `shape`.
Loops merge_loops(const Shape& shape, std::vector<Strides> strides);

}  // namespace anymps::cpu
