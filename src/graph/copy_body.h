// SPDX-License-Identifier: Apache-2.0
// A graph that stood in an attribute, written out in the graph around it or in another body.
#pragma once

#include <optional>
#include <vector>

#include "graph/graph.h"

namespace anymps {

// Copies the nodes of a body into a graph, its inputs replaced; returns what the body's outputs are
// there.
std::vector<Value*> copy_body(Graph& graph, const Graph& body, const std::vector<Value*>& inputs);

// What a branch's condition is, if that can be told before the run: from a constant, or from
// shapes.
std::optional<bool> known_condition(const Value* condition);

// Whether a node must run even if nobody uses its outputs, and as often as it is there: it is
// impure, or holds a graph with such a node. And whether a graph has such a node.
bool has_effects(const Node& node);
bool has_effects(const Graph& body);

}  // namespace anymps
