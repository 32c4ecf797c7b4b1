// SPDX-License-Identifier: Apache-2.0
// The reverse walk that gradients are made by, for gradient() and for the rules of nodes that hold
// graphs.
#pragma once

#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "graph/graph.h"
#include "ops/gradient.h"

namespace anymps {

// A tensor of floats or complex numbers.
bool differentiable(const Value& value);

// A reverse walk over some nodes of a graph, given in running order.
class GradientWalk {
 public:
  GradientWalk(Graph& graph, std::vector<Node*> nodes, const std::vector<Value*>& xs);

  bool needs(const Value* value) const { return needed_.contains(value); }  // it depends on an x
  void give(Value* value, Value* gradient);
  Value* of(Value* value) const;  // null: no gradient came here
  void run();

 private:
  void step(Node& node);

  Graph& graph_;
  std::vector<Node*> nodes_;
  std::unordered_set<const Value*> needed_;
  std::unordered_map<const Value*, Value*> gradients_;
};

// What functions of gradients add to.
class GraphGradientBuilder final : public GradientBuilder {
 public:
  explicit GraphGradientBuilder(Graph& graph)
      : graph_(graph), last_(graph.nodes().empty() ? nullptr : graph.nodes().back().get()) {}

  const ValueType& type(const Value& value) const override;
  const std::string& name(const Value& value) const override;
  std::optional<std::vector<int64_t>> known_ints(const Value& value) const override;
  std::vector<Value*> add(const Op& op, std::vector<Value*> inputs, const NamedAttrs& attrs,
                          const std::string& name, size_t outputs) override;
  Value* scalar(DType dtype, double number) override;
  Value* ints(const std::vector<int64_t>& values) override;
  std::vector<Value*> pull_back(const Seeds& seeds, const std::vector<Value*>& xs) override;

  // The graph around, for the functions of nodes that hold graphs.
  static Graph& graph_of(const GradientContext& ctx) {
    return static_cast<GraphGradientBuilder&>(ctx.builder()).graph_;
  }

 private:
  Graph& graph_;
  const Node* last_;  // the graph's last node before the function
};

// The gradients of the sum of several seed * y to xs, as new nodes; null for an x that nothing
// depends on.
using GradientSeeds = GradientBuilder::Seeds;  // y and its gradient
std::vector<Value*> pull_back(Graph& graph, const GradientSeeds& seeds,
                              const std::vector<Value*>& xs);

Value* filled_like(Graph& graph, Value* like, double number);

}  // namespace anymps
