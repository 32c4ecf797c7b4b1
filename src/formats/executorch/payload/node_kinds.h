// SPDX-License-Identifier: Apache-2.0
// The kinds of nodes that the schema of a payload has, and which function converts which.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "formats/executorch/payload/node_call.h"

namespace anymps::executorch {

// All kinds in the order of the schema's union: the first is number 1.
std::span<const std::string_view> node_kinds();
const NodeConverter* find_node(std::string_view kind);  // null: none
std::string label_of(std::string_view kind);            // "MPSConv2D" -> "conv2d"

}  // namespace anymps::executorch
