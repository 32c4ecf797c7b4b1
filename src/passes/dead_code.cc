// SPDX-License-Identifier: Apache-2.0
// Removes nodes and constants that no output needs, and outputs that an op offers but nobody reads:
// a max_pool without its indices is a cheaper kernel.
#include <algorithm>

#include "passes/match.h"
#include "passes/pass.h"

namespace anymps {

namespace {

bool drop_unused_outputs(Graph& graph, Node& node) {
  const Op& op = *node.op;
  if (op.variadic_outputs || op.is(kImpure)) return false;
  size_t used = node.outputs.size();
  while (used > 1 && op.outputs[used - 1].by_product && node.outputs[used - 1]->users.empty() &&
         !graph.is_output(node.outputs[used - 1]))
    --used;
  if (used == node.outputs.size()) return false;
  Node* smaller = graph.add_node(*node.op, node.inputs, node.attrs.named(), node.name, used);
  for (size_t i = 0; i < used; ++i) graph.replace_uses(node.outputs[i], smaller->outputs[i]);
  return true;
}

}  // namespace

PASS(dead_code, 100, "removes what no output needs") {
  int changes = static_cast<int>(graph.erase_dead());
  changes += Rewriter(graph).each([&](Node& node) { return drop_unused_outputs(graph, node); });
  return changes;
}

}  // namespace anymps
