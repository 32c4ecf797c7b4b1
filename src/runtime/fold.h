// SPDX-License-Identifier: Apache-2.0
// Computing ahead of a run: a node whose inputs are all constants, for the pass fold_constants, and
// for a plan what follows from the shapes of the feeds where inference does not tell it.
#pragma once

#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "graph/graph.h"
#include "runtime/device.h"

namespace anymps {

// Empty: the node cannot be computed ahead of a run. A single large result is a recipe, which makes
// its elements when they are asked for: see memory/constant.h.
std::vector<ConstantPtr> fold(Device& device, const Node& node);

// Inference carries the elements of short lists of integers. Shape arithmetic may leave these: a
// scale is a quotient of floats, a grid has two axes, a mask is counted. When that leaves a shape
// open, the nodes it comes from are computed, as far as they read nothing but constants and shapes.
class ShapeArithmetic {
 public:
  using Types = std::unordered_map<const Value*, ValueType>;
  using Constants = std::unordered_map<const Value*, ConstantPtr>;

  // `types`: of the values inferred so far, from the shapes of the feeds.
  ShapeArithmetic(Device& device, Types& types) : device_(device), types_(types) {}

  // Types of the outputs of `node`, some of which are open, are set as far as they can be told.
  void settle(const Node& node);
  // What was computed: values of the graph that are constants for these feeds.
  Constants take() { return std::move(made_); }

 private:
  const ValueType& type_of(const Value* value) const;
  ConstantPtr known(const Value* value);
  ConstantPtr constant_of(const Value* value);
  bool may_compute(const Node& node) const;
  void compute(const Node& node);
  bool infer(const Node& node, const std::vector<ConstantPtr>& inputs);
  bool measure(const Node& node, const std::vector<ConstantPtr>& inputs);

  Device& device_;
  Types& types_;
  Constants made_;
  std::unordered_set<const Node*> visited_;
  bool open_ = false;  // a shape depends on data: there is no plan, whatever else is known
};

}  // namespace anymps
