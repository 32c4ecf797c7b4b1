// SPDX-License-Identifier: Apache-2.0
// A value that a loop carries, but whose body hands it on as it came, is the same in every round:
// it becomes a capture. Exporters carry the weights of recurrent layers like that; as captures they
// are constants of the body, which are packed once and never copied.
#include <unordered_map>

#include "passes/loops.h"
#include "passes/match.h"
#include "passes/pass.h"

namespace anymps {

namespace {

// What goes out of one body: inputs that become captures, outputs that nobody needs.
struct Change {
  const char* attr;
  std::vector<size_t> inputs, outputs;
};

bool contains(const std::vector<size_t>& list, size_t number) {
  return std::find(list.begin(), list.end(), number) != list.end();
}

// The body with some of its inputs moved behind the others, in order, and some outputs left out.
std::shared_ptr<Graph> without(const Graph& body, const Change& change) {
  auto made = std::make_shared<Graph>();
  made->name = body.name;
  std::unordered_map<const Value*, Value*> twins;
  auto add_input = [&](const Value* value) {
    twins[value] = made->input(value->name, value->type);
  };
  for (size_t i = 0; i < body.inputs().size(); ++i)
    if (!contains(change.inputs, i)) add_input(body.inputs()[i]);
  for (const size_t i : change.inputs) add_input(body.inputs()[i]);
  for (const Value* value : body.values())
    if (value->is_constant()) twins[value] = made->constant(value->constant, value->name);
  for (const auto& node : body.nodes()) {
    std::vector<Value*> inputs;
    for (const Value* value : node->inputs) inputs.push_back(value ? twins.at(value) : nullptr);
    const Node* copy = made->add_node(*node->op, std::move(inputs), node->attrs.named(), node->name,
                                      node->outputs.size());
    for (size_t i = 0; i < copy->outputs.size(); ++i) twins[node->outputs[i]] = copy->outputs[i];
  }
  std::vector<Value*> outputs;
  for (size_t i = 0; i < body.outputs().size(); ++i)
    if (!contains(change.outputs, i)) outputs.push_back(twins.at(body.outputs()[i]));
  made->set_outputs(std::move(outputs));
  return made;
}

// A loop without the values that stay the same.
struct Smaller {
  std::vector<size_t> values;   // carried values that stay the same
  std::vector<size_t> results;  // the node's outputs for them
  std::vector<Change> bodies;
};

Smaller find_invariants(const Node& node, const Carried& where) {
  const size_t count = where.count(node);
  const bool two_bodies = node.is("while_loop");
  const Graph& first = *node.attrs.graph(two_bodies ? "before" : "body");
  Smaller found;
  found.bodies.push_back({two_bodies ? "before" : "body", {}, {}});
  if (two_bodies) found.bodies.push_back({"after", {}, {}});
  for (size_t k = 0; k < count; ++k) {
    size_t result = k;
    if (two_bodies) {
      const Graph& after = *node.attrs.graph("after");
      result = input_number(after, after.outputs()[k]);
      if (result >= node.outputs.size()) continue;
    }
    if (input_number(first, first.outputs()[where.body_output + result]) != where.body_input + k)
      continue;
    const Container container = node.outputs[result]->type.container;
    if (node.inputs[where.node_input + k]->type.container != container ||
        first.inputs()[where.body_input + k]->type.container != container)
      continue;
    if (found.results.size() + 1 == node.outputs.size()) break;  // a node has at least one output
    found.values.push_back(k);
    found.results.push_back(result);
    found.bodies[0].inputs.push_back(where.body_input + k);
    found.bodies[0].outputs.push_back(where.body_output + result);
    if (!two_bodies) continue;
    found.bodies[1].inputs.push_back(result);
    found.bodies[1].outputs.push_back(k);
  }
  return found;
}

Node* smaller_loop(Graph& graph, const Node& node, const Carried& where, const Smaller& found) {
  std::vector<Value*> inputs, moved;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const bool out = i >= where.node_input && contains(found.values, i - where.node_input);
    (out ? moved : inputs).push_back(node.inputs[i]);
  }
  inputs.insert(inputs.end(), moved.begin(), moved.end());
  NamedAttrs attrs = node.attrs.named();
  for (NamedAttr& attr : attrs) {
    if (attr.name == where.attr)
      attr = {attr.name, node.attrs.i(where.attr) - std::ssize(found.values)};
    for (const Change& change : found.bodies)
      if (attr.name == change.attr)
        attr = {attr.name, AttrValue(without(*node.attrs.graph(change.attr), change))};
  }
  return graph.add_node(*node.op, std::move(inputs), attrs, node.name,
                        node.outputs.size() - found.results.size());
}

}  // namespace

PASS(loop_invariants, 106, "what a loop carries and never changes becomes a capture") {
  Rewriter rewriter(graph);
  const int changes = rewriter.each([&](Node& node) {
    const Carried* where = carried_of(node);
    if (!where) return false;
    const Smaller found = find_invariants(node, *where);
    if (found.values.empty()) return false;
    const Node* made = smaller_loop(graph, node, *where, found);
    size_t next = 0;
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      Value* output = node.outputs[i];
      auto it = std::find(found.results.begin(), found.results.end(), i);
      Value* result = nullptr;
      if (it == found.results.end()) {
        result = made->outputs[next++];
      } else {
        if (output->users.empty() && !graph.is_output(output)) continue;
        const size_t k = found.values[it - found.results.begin()];
        result = node.inputs[where->node_input + k];
        if (!can_replace(graph, output, result))  // an output that is an input, or comes twice
          result = graph.add(
              result->type.container == Container::kTensor ? "identity" : "container_identity",
              {result});
      }
      graph.replace_uses(output, result);
    }
    graph.erase(&node);  // even if it has effects: the smaller one has them now
    return true;
  });
  if (changes) graph.infer_again();
  return changes;
}

}  // namespace anymps
