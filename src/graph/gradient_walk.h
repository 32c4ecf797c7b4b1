// SPDX-License-Identifier: Apache-2.0
// The reverse walk that gradients are made by, for gradient() and for the rules of nodes that hold
// graphs.
#pragma once

#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "graph/graph.h"

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

// The gradients of the sum of several seed * y to xs, as new nodes; null for an x that nothing
// depends on.
using GradientSeeds = std::vector<std::pair<Value*, Value*>>;  // y and its gradient
std::vector<Value*> pull_back(Graph& graph, const GradientSeeds& seeds,
                              const std::vector<Value*>& xs);

Value* filled_like(Graph& graph, Value* like, double number);

}  // namespace anymps
