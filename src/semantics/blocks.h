// SPDX-License-Identifier: Apache-2.0
// The blocks of space_to_batch and batch_to_space: which place of the batch axis an element of a
// block goes to.
#pragma once

#include <cstdint>
#include <vector>

namespace anymps {

struct Blocks {
  std::vector<int64_t> axes, sizes;  // the spatial axes and the block's extent along each
  int64_t batch = 0;                 // the axis that holds the places in a block
  bool shuffled = false;             // the places of one batch entry lie together

  // Places in a block.
  int64_t places() const {
    int64_t count = 1;
    for (const int64_t size : sizes) count *= size;
    return count;
  }
  // How far an entry of the batch axis, of so many before the blocks are moved there, is from the
  // next, and an element of a block from the next along spatial axis i of `axes`.
  int64_t batch_step() const { return shuffled ? places() : 1; }
  int64_t place_step(size_t i, int64_t batches) const {
    int64_t step = shuffled ? 1 : batches;
    for (size_t k = i + 1; k < sizes.size(); ++k) step *= sizes[k];
    return step;
  }
};

}  // namespace anymps
