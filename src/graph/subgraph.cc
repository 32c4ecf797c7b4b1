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

bool has_effects(const Node& node) {
  if (node.op->is(kImpure)) return true;
  if (!node.op->is(kStructural)) return false;
  for (const AttrValue& attr : node.attrs.values())
    if (const auto* body = std::get_if<std::shared_ptr<Graph>>(&attr); body && *body)
      for (const auto& inner : (*body)->nodes())
        if (has_effects(*inner)) return true;
  return false;
}

}  // namespace anymps
