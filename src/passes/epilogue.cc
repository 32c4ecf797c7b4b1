// SPDX-License-Identifier: Apache-2.0
#include "passes/epilogue.h"

#include "passes/match.h"

namespace anymps {

std::optional<std::pair<double, double>> clamp_bounds(const Node& node) {
  double bounds[2] = {node.attrs.f("min"), node.attrs.f("max")};
  for (size_t i = 0; i < 2; ++i) {
    if (!node.input(i + 1)) continue;
    auto number = scalar_of(node.input(i + 1));
    if (!number || !is_scalar(node.input(i + 1))) return std::nullopt;
    bounds[i] = *number;
  }
  if (!(bounds[0] <= bounds[1])) return std::nullopt;
  return std::pair(bounds[0], bounds[1]);
}

std::optional<FusedActivation> as_activation(const Node& node) {
  const Value* x = node.input(0);
  if (!x || !is_float(x->dtype()) || !same_shape(x, node.output())) return std::nullopt;
  if (node.is("clamp")) {
    auto bounds = clamp_bounds(node);
    if (!bounds) return std::nullopt;
    return FusedActivation{"clamp", bounds->first, bounds->second};
  }
  if (node.is("gelu"))
    return FusedActivation{node.attrs.s("approximate") == "tanh" ? "gelu_tanh" : "gelu"};
  if (node.is("leaky_relu") || node.is("elu"))
    return FusedActivation{node.op->name, node.attrs.f("alpha")};
  if (node.is("hard_sigmoid"))
    return FusedActivation{node.op->name, node.attrs.f("alpha"), node.attrs.f("beta")};
  for (const char* plain : {"relu", "silu", "sigmoid", "tanh", "hard_swish"})
    if (node.is(plain)) return FusedActivation{plain};
  return std::nullopt;
}

Value* with_activation(Graph& graph, const Node& node, const FusedActivation& activation,
                       const char* alpha, const char* beta) {
  Attrs attrs = node.attrs;
  attrs.set({"activation", activation.name});
  attrs.set({alpha, activation.alpha});
  attrs.set({beta, activation.beta});
  return graph.add(node.op->name, node.inputs, attrs.named(), node.name);
}

Value* activation_of(Graph& graph, Value* y, const Attrs& attrs, const char* alpha,
                     const char* beta) {
  const std::string& name = attrs.s("activation");
  const double a = attrs.f(alpha), b = attrs.f(beta);
  if (name == "none") return y;
  if (name == "clamp") return graph.add(name, {y}, {{"min", a}, {"max", b}});
  if (name == "leaky_relu" || name == "elu") return graph.add(name, {y}, {{"alpha", a}});
  if (name == "gelu_tanh") return graph.add("gelu", {y}, {{"approximate", "tanh"}});
  if (name == "hard_sigmoid") return graph.add(name, {y}, {{"alpha", a}, {"beta", b}});
  return graph.add(name, {y});
}

Node* only_user(const Graph& graph, const Value* value) {
  return single_use(graph, value) ? value->users.front() : nullptr;
}

Value* residual_of(const Node& add, const Value* y) {
  if (!add.is("add")) return nullptr;
  Value* other = add.input(0) == y ? add.input(1) : add.input(0);
  return other != y && same_shape(other, y) ? other : nullptr;
}

}  // namespace anymps
