// SPDX-License-Identifier: Apache-2.0
// Writing a graph to a file, in the format that the name asks for.
#pragma once

#include <string>

#include "base/mapped_file.h"
#include "graph/graph.h"

namespace anymps {

// ".onnx" writes an ONNX model, any other name an .mps file. `sources`: files that constants are
// read from; if one of them was truncated meanwhile, the file at `path` stays as it was.
void save_graph(const Graph& graph, const std::string& path, const MappedFiles& sources = {});
// What such a file holds; the format is "mps" or "onnx".
std::string graph_bytes(const Graph& graph, const std::string& format);

}  // namespace anymps
