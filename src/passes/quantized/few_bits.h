// SPDX-License-Identifier: Apache-2.0
// Matrices of floats rounded to 8 or 4 bits, as weight_only_matmul stores them.
#pragma once

#include <optional>

#include "memory/constant.h"

namespace anymps {

struct FewBits {
  int64_t bits = 8;
  int64_t group = 0;   // elements of a row that share a scale; 0: all
  bool turns = false;  // rows of what is stored are the matrix's columns
};

struct FewBitsMatrix {
  ConstantPtr w;       // i8[rows, depth], or u8[rows, depth / 2] of 4 bits
  ConstantPtr scales;  // [rows], or [depth / group, rows]; of the matrix's dtype
};

// The nearest numbers that the form has. Of 8 bits they are -127 to 127 steps; of 4 bits -8 to 7,
// and of several steps that with the least squares of errors. Nothing where an element is not
// finite, or the dtype has no such step.
std::optional<FewBitsMatrix> in_few_bits(const Constant& matrix, const FewBits& form);

}  // namespace anymps
