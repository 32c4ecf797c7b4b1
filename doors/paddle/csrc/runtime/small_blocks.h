// SPDX-License-Identifier: Apache-2.0
// Memory of small results. Of Paddle's allocators for devices each makes an object and takes a lock
// for a piece of memory, and they search for one that fits. For results of a few elements that is
// more work than the kernel, so here these are blocks of a few sizes out of slabs, taken from a
// list and put back, each together with all that says whose it is.
#pragma once

#include <paddle/phi/core/allocator.h>

namespace anymps::paddle {

// Null: larger than a block, or there is no memory for a slab; Paddle's allocator is asked then. It
// gives back what it caches, or raises its own error.
phi::Allocator::AllocationPtr small_block(const phi::Place& place, size_t bytes);

// Gives slabs without a used block back to the system.
void release_small_blocks();

}  // namespace anymps::paddle
