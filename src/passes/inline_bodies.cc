// SPDX-License-Identifier: Apache-2.0
// A branch that is known to be taken, and a call, become part of the graph around them: the other
// passes see through them, and the graph may be planned as a whole.
#include "graph/copy_body.h"
#include "passes/match.h"
#include "passes/pass.h"

namespace anymps {

namespace {

struct Chosen {
  const Graph* body = nullptr;
  size_t first_input = 0;  // of the node, for the first input of the body
};

Chosen chosen_body(const Node& node) {
  if (node.is("call")) return {node.attrs.graph("callee").get(), 0};
  if (!node.is("if_else")) return {};
  const auto condition = known_condition(node.input(0));
  if (!condition) return {};
  return {node.attrs.graph(*condition ? "then_branch" : "else_branch").get(), 1};
}

}  // namespace

PASS(inline_bodies, 105, "a branch that is known to be taken and a call become part of the graph") {
  Rewriter rewriter(graph);
  const int changes = rewriter.each([&](Node& node) {
    const Chosen chosen = chosen_body(node);
    if (!chosen.body) return false;
    // The other branch's value cannot stand for what only one branch may be.
    for (size_t i = 0; i < node.outputs.size(); ++i)
      if (node.outputs[i]->type.container != chosen.body->outputs()[i]->type.container)
        return false;
    const std::vector<Value*> inputs(
        node.inputs.begin() + static_cast<std::ptrdiff_t>(chosen.first_input), node.inputs.end());
    const std::vector<Value*> results = copy_body(graph, *chosen.body, inputs);
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      Value *output = node.outputs[i], *result = results[i];
      if (output->users.empty() && !graph.is_output(output)) continue;
      if (!can_replace(graph, output, result))  // an output that is an input, or comes twice
        result = graph.add(
            result->type.container == Container::kTensor ? "identity" : "container_identity",
            {result});
      graph.replace_uses(output, result);
    }
    graph.erase(&node);  // even if it has effects: the copies have them now
    return true;
  });
  if (changes) graph.infer_again();  // one branch tells more than what two have in common
  return changes;
}

}  // namespace anymps
