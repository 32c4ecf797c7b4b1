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
};

// `strides[k]` are operand k's strides over `shape`. Operand 0 decides the order of the axes.
Loops make_loops(const Shape& shape, std::vector<Strides> strides);

// The same in the order given, so that operands are visited in row-major order of `shape`.
Loops merge_loops(const Shape& shape, std::vector<Strides> strides);

}  // namespace anymps::cpu
