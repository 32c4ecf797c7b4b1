// SPDX-License-Identifier: Apache-2.0
// A graph as text for people: one line a node.
#pragma once

#include <string>

#include "graph/graph.h"

namespace anymps {

std::string to_text(const Graph& graph);
// "text", "json" or "svg".
std::string print_graph(const Graph& graph, const std::string& format);

}  // namespace anymps
