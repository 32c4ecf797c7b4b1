// SPDX-License-Identifier: Apache-2.0
// From an op and its attributes to calls of tile functions: what single ops and fused programs
// share, and which ops have them.
#pragma once

#include <optional>

#include "drivers/cpu/elementwise/tile_kernel.h"

namespace anymps::cpu {

// Adds the op to the program. `args` are its inputs in order, nullopt for an absent one; `dtype` is
// the output's. Nothing and a reason if there is no function for it.
std::optional<TileKernelBuilder::Value> emit(TileKernelBuilder& builder, const Op& op,
                                             const Attrs& attrs,
                                             const std::vector<std::optional<int>>& args,
                                             DType dtype, std::string& why);

// Which parameter of the op's tile function an attribute is; nothing if it is none.
std::optional<size_t> place_of_attribute(const Op& op, std::string_view attr);

// The kernels of an op on the CPU: those that are registered, and the tile program of an
// elementwise op that there are tile functions for.
const KernelList& kernels_of(const Op& op);

}  // namespace anymps::cpu
