// SPDX-License-Identifier: Apache-2.0
// The blocks of space_to_batch and batch_to_space.
#pragma once

#include <vector>

#include "ops/attr.h"

namespace anymps {

struct Blocks {
  std::vector<int64_t> axes, sizes;  // the spatial axes and the block's extent along each
  int64_t batch = 0;
};

// From the op's attributes, checked and with axes in [0, rank).
Blocks blocks_of(const Attrs& attrs, int64_t rank, const char* op);

}  // namespace anymps
