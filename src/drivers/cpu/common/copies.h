// SPDX-License-Identifier: Apache-2.0
// A kernel that is a few strided copies, planned at preparation: how most ops that move elements
// run.
#pragma once

#include "drivers/cpu/common/copy.h"
#include "drivers/kernel.h"

namespace anymps::cpu {

struct Piece {
  static constexpr int kZeros = -1;  // as an input: a zero for every element

  int input = 0;
  size_t output = 0;
  int64_t from = 0, to = 0;  // bytes from the tensors' first elements
  StridedCopy copy;
};

KernelPtr make_copies(std::vector<Piece> pieces);

}  // namespace anymps::cpu
