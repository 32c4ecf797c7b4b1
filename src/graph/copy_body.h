// SPDX-License-Identifier: Apache-2.0
// A graph that stood in an attribute, written out in the graph around it or in another body.
#pragma once

#include <vector>

#include "graph/graph.h"

namespace anymps {

// Copies the nodes of a body into a graph, its inputs replaced; returns what the body's outputs are
// there.
std::vector<Value*> copy_body(Graph& graph, const Graph& body, const std::vector<Value*>& inputs);

// Whether any of its nodes must run as often as it is there.
bool has_effects(const Graph& body);

}  // namespace anymps
