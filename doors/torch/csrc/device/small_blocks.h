// SPDX-License-Identifier: Apache-2.0
// Small blocks that a thread has let go of, kept for its next small tensors: taking one costs
// neither a lock nor the books of the engine's allocator, which take longer than adding two
// numbers. What is kept is bounded, goes back when the thread ends, and counts as free.
#pragma once

#include <c10/core/Allocator.h>

namespace anymps::aten {

inline constexpr size_t kMostSmallBytes = 4096;

c10::DataPtr small_block(size_t bytes);  // 1 to kMostSmallBytes
void release_small_blocks();             // this thread's

}  // namespace anymps::aten
