// SPDX-License-Identifier: Apache-2.0
// Writing a graph to a file, in the format that the name asks for.
#pragma once

#include <string>

#include "graph/graph.h"

namespace anymps {

// ".onnx" writes an ONNX model, any other name an .mps file.
void save_graph(const Graph& graph, const std::string& path);

}  // namespace anymps
