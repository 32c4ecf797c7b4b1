// SPDX-License-Identifier: Apache-2.0
// Which nodes a convolution or matmul can apply to its result before it stores it.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "graph/graph.h"

namespace anymps {

// The numbers between which a clamp node keeps its input, if they are constant.
std::optional<std::pair<double, double>> clamp_bounds(const Node& node);

// A node as the `activation` attribute of conv and matmul.
struct FusedActivation {
  std::string name;
  double alpha = 0, beta = 0;
};
std::optional<FusedActivation> as_activation(const Node& node);
// A node like `node` that has this activation; `alpha` and `beta` are what the op calls its
// numbers.
Value* with_activation(Graph& graph, const Node& node, const FusedActivation& activation,
                       const char* alpha, const char* beta);

// What these attributes of a node do to its result, as a node behind it.
Value* activation_of(Graph& graph, Value* y, const Attrs& attrs, const char* alpha,
                     const char* beta);

// The only node that reads `value`, or null.
Node* only_user(const Graph& graph, const Value* value);

// For an add that reads `y`: the other operand, if it has exactly y's shape.
Value* residual_of(const Node& add, const Value* y);

}  // namespace anymps
