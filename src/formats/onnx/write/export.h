// SPDX-License-Identifier: Apache-2.0
// A graph as an ONNX model of opset 21. What ONNX has no op for is written in several; what cannot
// be written is an error that lists all such nodes.
#pragma once

#include <string>

#include "graph/graph.h"

namespace anymps::onnx {

std::string export_model(const anymps::Graph& graph);

}  // namespace anymps::onnx
