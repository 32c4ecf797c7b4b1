// SPDX-License-Identifier: Apache-2.0
// A method of an ExecuTorch program -> Graph. The instructions are walked once; operators outside
// delegates and the nodes of the delegate `MPSBackend` become ops of one graph, so that passes see
// across their borders. Buffers that the program changes become variables.
#pragma once

#include <memory>

#include "formats/executorch/program/bundle.h"
#include "graph/graph.h"

namespace anymps::executorch {

std::unique_ptr<Graph> import_method(const Program& program, const Method& method);

bool is_executorch(std::string_view bytes);  // a program, a bundle or the payload of a delegate
// By its name or by how it begins, whatever became of its identifier.
bool seems_executorch(const Source& source);
// The method "forward", or the only one; or the payload.
std::unique_ptr<Graph> import_source(const Source& source);

}  // namespace anymps::executorch
