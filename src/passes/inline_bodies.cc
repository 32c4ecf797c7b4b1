// SPDX-License-Identifier: Apache-2.0
// A branch that is known to be taken, and a call, become part of the graph around them: the other
// passes see through them, and the graph may be planned as a whole.
#include <unordered_map>

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
  const auto condition = scalar_of(node.input(0));
  if (!condition || node.input(0)->constant->desc().count() != 1) return {};
  return {node.attrs.graph(*condition != 0 ? "then_branch" : "else_branch").get(), 1};
}

// Copies of the body's nodes, before `node`; returns the body's outputs.
std::vector<Value*> copy_body(Graph& graph, const Graph& body, const Node& node, size_t first) {
  std::unordered_map<const Value*, Value*> twins;
  for (size_t i = 0; i < body.inputs().size(); ++i)
    twins[body.inputs()[i]] = node.inputs.at(first + i);
  for (const Value* value : body.values())
    if (value->is_constant()) twins[value] = graph.constant(value->constant, value->name);
  for (const auto& inner : body.nodes()) {
    std::vector<Value*> inputs;
    for (const Value* value : inner->inputs) inputs.push_back(value ? twins.at(value) : nullptr);
    const Node* copy = graph.add_node(*inner->op, std::move(inputs), inner->attrs.named(),
                                      inner->name, inner->outputs.size());
    for (size_t i = 0; i < copy->outputs.size(); ++i) twins[inner->outputs[i]] = copy->outputs[i];
  }
  std::vector<Value*> outputs;
  for (const Value* value : body.outputs()) outputs.push_back(twins.at(value));
  return outputs;
}

}  // namespace

PASS(inline_bodies, 105, "a branch that is known to be taken and a call become part of the graph") {
  Rewriter rewriter(graph);
  const int changes = rewriter.each([&](Node& node) {
    const Chosen chosen = chosen_body(node);
    if (!chosen.body) return false;
    // What only one branch may be, the other's value cannot stand for.
    for (size_t i = 0; i < node.outputs.size(); ++i)
      if (node.outputs[i]->type.container != chosen.body->outputs()[i]->type.container)
        return false;
    const std::vector<Value*> results = copy_body(graph, *chosen.body, node, chosen.first_input);
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
