// SPDX-License-Identifier: Apache-2.0
// Elementwise nodes that feed each other become one node with a program, so that what lies between
// them never goes to memory:
//   relu(add(mul(x, s), t))  ->  fused_elementwise(x, s, t) {t0=mul(x0,x1); t1=add(t0,x2);
//   y=relu(t1)}
// A node joins when all its readers are inside and its result has the shape of the last one's, so
// nothing is computed twice. Each step rounds to its own dtype: the numbers stay exactly the same.
#include <cmath>
#include <unordered_map>

#include "ops/elementwise/program_builder.h"
#include "passes/match.h"
#include "passes/pass.h"

namespace anymps {

namespace {

constexpr size_t kMaxInstructions = 16, kMaxInputs = 8;

bool fusible(const Node& node) {
  if (!node.op->is(kElementwise) || node.op->is(kInternal) || node.op->is(kImpure)) return false;
  if (node.outputs.size() != 1 || node.op->view || node.inputs.size() > kMaxInputs) return false;
  const ValueType& type = node.output()->type;
  if (!type.ranked || type.content) return false;  // shape arithmetic needs no kernel
  for (const Value* input : node.inputs)
    if (input && (!input->type.ranked || !contains(kReal | kBoolean, input->dtype()))) return false;
  return contains(kReal | kBoolean, type.dtype);
}

// A number that the program can hold: with another argument beside it that tells its dtype.
std::optional<double> immediate(const Node& node, size_t i) {
  const Value* value = node.input(i);
  if (!value->is_constant() || !is_scalar(value)) return std::nullopt;
  const auto& specs = node.op->inputs;
  bool told = false;
  for (size_t k = 0; k < node.inputs.size(); ++k)
    told |= k != i && node.input(k) && specs[k].type == specs[i].type &&
            !(node.input(k)->is_constant() && is_scalar(node.input(k)));
  auto number = told ? scalar_of(value) : std::nullopt;
  const bool exact = number && std::isfinite(*number) && std::abs(*number) <= 0x1p53;
  return exact ? number : std::nullopt;
}

class Cluster {
 public:
  Cluster(const Graph& graph, Node& root) : graph_(graph), root_(root) { nodes_.push_back(&root); }

  // Takes in producers as long as there are some that fit.
  void grow() {
    for (bool grown = true; grown && nodes_.size() < kMaxInstructions;) {
      grown = false;
      for (Node* node : std::vector<Node*>(nodes_)) {
        for (Value* input : node->inputs) {
          if (!input || !joins(input) || nodes_.size() == kMaxInstructions) continue;
          nodes_.push_back(input->producer);
          if (inputs().size() > kMaxInputs) {
            nodes_.pop_back();
            continue;
          }
          grown = true;
        }
      }
    }
  }

  size_t size() const { return nodes_.size(); }

  // The fused node, or null when its shape would come out differently.
  Value* build(Graph& graph) {
    const std::vector<Value*> values = inputs();
    if (values.empty()) return nullptr;
    ElementwiseProgramBuilder program;
    std::unordered_map<const Value*, ProgramArg> results;
    for (const Node* node : in_order()) {
      std::vector<ProgramArg> args;
      for (size_t i = 0; i < node->inputs.size(); ++i) {
        const Value* input = node->inputs[i];
        if (!input)
          args.push_back(ProgramArg::absent());
        else if (auto result = results.find(input); result != results.end())
          args.push_back(result->second);
        else if (auto number = immediate(*node, i))
          args.push_back(ProgramArg::immediate(*number));
        else
          args.push_back(ProgramArg::input(static_cast<size_t>(
              std::find(values.begin(), values.end(), input) - values.begin())));
      }
      const NamedAttrs named = node->attrs.named();
      const std::vector<ProgramAttr> attrs(named.begin(), named.end());
      results[node->output()] = program.call(*node->op, args, attrs);
    }
    program.output(results[root_.output()]);
    const std::span<const int64_t> words = program.words();
    Value* fused =
        graph.add("fused_elementwise", values,
                  {{"program", std::vector<int64_t>(words.begin(), words.end())}}, root_.name);
    if (same_shape(fused, root_.output())) return fused;
    graph.erase(fused->producer);
    return nullptr;
  }

 private:
  bool inside(const Node* node) const {
    return std::find(nodes_.begin(), nodes_.end(), node) != nodes_.end();
  }

  bool joins(const Value* value) const {
    Node* node = value->producer;
    if (!node || inside(node) || !fusible(*node) || graph_.is_output(value)) return false;
    return same_shape(value, root_.output()) &&
           std::all_of(value->users.begin(), value->users.end(),
                       [&](const Node* user) { return inside(user); });
  }

  // What the nodes read from outside, each once, in the order of the program.
  std::vector<Value*> inputs() const {
    std::vector<Value*> values;
    for (const Node* node : in_order())
      for (size_t i = 0; i < node->inputs.size(); ++i) {
        Value* input = node->inputs[i];
        if (!input || (input->producer && inside(input->producer)) || immediate(*node, i)) continue;
        if (std::find(values.begin(), values.end(), input) == values.end()) values.push_back(input);
      }
    return values;
  }

  // Producers first: a depth-first walk from the root.
  std::vector<const Node*> in_order() const {
    std::vector<const Node*> order;
    visit(&root_, order);
    return order;
  }
  void visit(const Node* node, std::vector<const Node*>& order) const {
    if (std::find(order.begin(), order.end(), node) != order.end()) return;
    for (const Value* input : node->inputs)
      if (input && input->producer && inside(input->producer)) visit(input->producer, order);
    order.push_back(node);
  }

  const Graph& graph_;
  Node& root_;
  std::vector<Node*> nodes_;
};

}  // namespace

PASS(fuse_elementwise, 700, "chains of elementwise nodes become one node with a program") {
  if (!context.fuses) return 0;
  Rewriter rewriter(graph);
  return rewriter.each_backwards([&](Node& node) {
    if (!fusible(node)) return false;
    Cluster cluster(graph, node);
    cluster.grow();
    if (cluster.size() < 2) return false;
    Value* fused = cluster.build(graph);
    return fused && rewriter.replace(node.output(), fused);
  });
}

}  // namespace anymps
