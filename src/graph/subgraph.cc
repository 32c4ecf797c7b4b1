// SPDX-License-Identifier: Apache-2.0
#include "ops/subgraph.h"

#include "graph/graph.h"

namespace anymps {

Signature signature_of(const Graph& body) {
  Signature signature;
  for (const Value* value : body.inputs()) {
    signature.names.push_back(value->name);
    signature.inputs.push_back(value->type);
  }
  for (const Value* value : body.outputs()) signature.outputs.push_back(value->type);
  return signature;
}

}  // namespace anymps
