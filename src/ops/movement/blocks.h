// SPDX-License-Identifier: Apache-2.0
// The blocks of space_to_batch and batch_to_space.
#pragma once

#include "ops/attr.h"
#include "semantics/blocks.h"

namespace anymps {

// From the op's attributes, checked and with axes in [0, rank).
Blocks blocks_of(const Attrs& attrs, int64_t rank, const char* op);

}  // namespace anymps
