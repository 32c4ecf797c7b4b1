// SPDX-License-Identifier: Apache-2.0
// A graph for people and tools: as text with one line per node, as JSON, and as an SVG picture.
#pragma once

#include <string>

#include "graph/graph.h"

namespace anymps {

// One line per constant and per node; the node's name follows where it is not its output's:
//   %y: f32[N, 64, 112, 112] = conv(%x, %w, %b) {strides=[2, 2]}  // "conv1"
std::string to_text(const Graph& graph);
std::string to_text(const Node& node);                       // without its name
std::string attr_text(const Op& op, const NamedAttr& attr);  // the value alone

// {"name", "inputs", "constants", "nodes": [{"op", "name", "inputs", "outputs", "attrs"}],
//  "outputs"}; values carry name, dtype and shape, whose symbols are strings.
std::string to_json(const Graph& graph);

// Layers from top to bottom, boxes coloured by op family, shapes beside the edges. Constants are
// named inside the boxes that use them.
std::string to_svg(const Graph& graph);

// "text", "json" or "svg".
std::string print_graph(const Graph& graph, const std::string& format);

}  // namespace anymps
