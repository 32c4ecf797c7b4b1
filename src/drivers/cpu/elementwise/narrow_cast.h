// SPDX-License-Identifier: Apache-2.0
// Tile functions that read and make the narrow storage types.
#pragma once

#include "base/narrow.h"
#include "drivers/cpu/elementwise/tile_ops.h"

namespace anymps::cpu {

const TileOp* find_narrow_decode(DType from);  // to f32
// From f32, and for integers also from i8. Parameters: saturate, NarrowRounding.
const TileOp* find_narrow_encode(DType from, DType to);

}  // namespace anymps::cpu
