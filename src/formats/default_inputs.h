// SPDX-License-Identifier: Apache-2.0
// Inputs with a default. A file may give a value to an input (ONNX: an initializer that is listed
// among the graph's inputs too). Importers make a constant of it: it is folded, packed and read for
// shapes like any other. A caller that wants to feed it asks for it by name when the file is
// loaded; then it is an input like the others, in the file's order.
#pragma once

#include <string>
#include <vector>

#include "graph/graph.h"

namespace anymps {

struct DefaultInputs {
  std::vector<std::string> wanted;  // to be inputs
  std::vector<Value> found;         // those that became constants: name and type
};

}  // namespace anymps
