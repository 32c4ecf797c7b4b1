// SPDX-License-Identifier: Apache-2.0
// Casts and `where` with vector instructions, which take the place of plain ones.
#pragma once

#include <vector>

#include "drivers/cpu/elementwise/tile_ops.h"

namespace anymps::cpu {

void append_casts(std::vector<TileOp>& ops);

}  // namespace anymps::cpu
