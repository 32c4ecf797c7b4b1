// SPDX-License-Identifier: Apache-2.0
// Computing a node whose inputs are all constants, for the pass fold_constants.
#pragma once

#include <vector>

#include "graph/graph.h"
#include "runtime/device.h"

namespace anymps {

// Empty: the node cannot be computed ahead of a run. A single large result is a recipe, which makes
// its elements when they are asked for: see memory/constant.h.
std::vector<ConstantPtr> fold(Device& device, const Node& node);

}  // namespace anymps
