// SPDX-License-Identifier: Apache-2.0
// ONNX -> Graph. Each ONNX op is one small function, named after it, in the file of its family
// (ops/elementwise.cc, ops/layers.cc, …), beside which write/ops has the way back. Weights stay in
// place in the file. Errors have the form  [onnx] FILE: node 17 "conv1" (Conv): reason.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "formats/default_inputs.h"
#include "formats/onnx/schema/model.h"
#include "graph/graph.h"

namespace anymps::onnx {

// The graph does not need the model any more: its constants share the owners of the tensors.
std::unique_ptr<anymps::Graph> import_model(const Model& model, DefaultInputs* defaults = nullptr);

// The ONNX ops that can be imported, sorted: for `anymps ops` and the docs.
std::vector<std::string> supported_ops();

// A tensor's elements as a constant; kUnsupported for element types that the engine does not have.
ConstantPtr to_constant(const Tensor& tensor);

}  // namespace anymps::onnx
