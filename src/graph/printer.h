// SPDX-License-Identifier: Apache-2.0
// A graph as text for people: one line a node.
#pragma once

#include <string>

#include "graph/graph.h"

namespace anymps {

std::string to_text(const Graph& graph);

}  // namespace anymps
