// SPDX-License-Identifier: Apache-2.0
// Finds activations written out:
//   max(x, 0)                                     ->  relu(x)
//   min(max(x, a), b)                             ->  clamp(x) {min=a, max=b}
//   1 / (1 + exp(-x))                             ->  sigmoid(x)
//   x * sigmoid(x)                                ->  silu(x)
//   clamp(x + 3, 0, 6) / 6                        ->  hard_sigmoid(x) {alpha=1/6, beta=0.5}
//   x * hard_sigmoid(x), x * clamp(x + 3, 0, 6) / 6  ->  hard_swish(x)
//   x * tanh(softplus(x))                         ->  mish(x)
// GELU has a separate pass.

#include "passes/epilogue.h"
#include "passes/fuse.h"

namespace anymps {

namespace {

Value* relu(Graph& graph, Node& node) {
  if (!node.is("max") || !node.attrs.b("propagate_nan")) return nullptr;
  for (size_t i = 0; i < 2; ++i)
    if (scalar_of(node.input(1 - i)) == 0.0 && same_shape(node.input(i), node.output()))
      return graph.add("relu", {node.input(i)}, {}, node.name);
  return nullptr;
}

// min(max(x, a), b) where the inner node is used here alone.
Value* clamp(Graph& graph, Node& node) {
  if (!node.is("min") || !node.attrs.b("propagate_nan")) return nullptr;
  for (size_t i = 0; i < 2; ++i) {
    auto high = scalar_of(node.input(1 - i));
    Value* inner = node.input(i);
    if (!high || !same_shape(inner, node.output()) || !single_use(graph, inner)) continue;
    Value* x = nullptr;
    double low = 0;
    if (Node* max = made_by(inner, "max"); max && max->attrs.b("propagate_nan")) {
      for (size_t k = 0; k < 2; ++k)
        if (auto number = scalar_of(max->input(1 - k));
            number && same_shape(max->input(k), inner)) {
          x = max->input(k);
          low = *number;
        }
    } else if (Node* rectified = made_by(inner, "relu")) {
      x = rectified->input(0);
    }
    if (x && low <= *high)
      return graph.add("clamp", {x}, {{"min", low}, {"max", *high}}, node.name);
  }
  return nullptr;
}

// The x of 1 + exp(-x).
Value* one_plus_exp(const Value* value) {
  auto sum = value->producer ? as_affine(*value->producer) : std::nullopt;
  if (!sum || sum->scale != 1 || sum->offset != 1) return nullptr;
  Node* exp = made_by(sum->source, "exp");
  Node* minus = exp ? made_by(exp->input(0), {"neg", "mul", "sub", "div"}) : nullptr;
  if (!minus) return nullptr;
  if (minus->is("neg")) return minus->input(0);
  auto affine = as_affine(*minus);
  return affine && affine->scale == -1 && affine->offset == 0 ? affine->source : nullptr;
}

Value* sigmoid(Graph& graph, Node& node) {
  if (node.is("reciprocal")) {
    Value* x = one_plus_exp(node.input(0));
    return x ? graph.add("sigmoid", {x}, {}, node.name) : nullptr;
  }
  if (!node.is("div") || node.attrs.s("rounding") != "none") return nullptr;
  Value* x = one_plus_exp(node.input(1));
  if (!x || !same_shape(x, node.output())) return nullptr;
  if (node.input(0) == x) return graph.add("silu", {x}, {}, node.name);
  return scalar_of(node.input(0)) == 1.0 ? graph.add("sigmoid", {x}, {}, node.name) : nullptr;
}

// The x of clamp(x + 3, 0, 6).
Value* relu6_of_shifted(const Value* value) {
  Node* node = made_by(value, "clamp");
  if (!node) return nullptr;
  auto bounds = clamp_bounds(*node);
  if (!bounds || bounds->first != 0 || bounds->second != 6 || !node->input(0)->producer)
    return nullptr;
  auto shifted = as_affine(*node->input(0)->producer);
  return shifted && shifted->scale == 1 && shifted->offset == 3 ? shifted->source : nullptr;
}

Value* hard_sigmoid(Graph& graph, Node& node) {
  auto affine = as_affine(node);
  if (!affine || affine->offset != 0) return nullptr;
  if (!near(affine->scale, 1.0 / 6, node.output()->dtype())) return nullptr;
  if (Value* x = relu6_of_shifted(affine->source))
    return graph.add("hard_sigmoid", {x}, {{"alpha", 1.0 / 6}, {"beta", 0.5}}, node.name);
  // x * clamp(x + 3, 0, 6) / 6
  Node* product = made_by(affine->source, "mul");
  if (!product || !single_use(graph, affine->source)) return nullptr;
  for (size_t i = 0; i < 2; ++i)
    if (Value* x = relu6_of_shifted(product->input(i)); x && x == product->input(1 - i))
      return graph.add("hard_swish", {x}, {}, node.name);
  return nullptr;
}

// x times a function of x.
Value* gated(Graph& graph, Node& node) {
  if (!node.is("mul")) return nullptr;
  for (size_t i = 0; i < 2; ++i) {
    Value* x = node.input(i);
    if (!same_shape(x, node.output())) continue;
    Node* gate = node.input(1 - i)->producer;
    if (!gate) continue;
    if (gate->is("sigmoid") && gate->input(0) == x) return graph.add("silu", {x}, {}, node.name);
    if (gate->is("hard_sigmoid") && gate->input(0) == x &&
        near(gate->attrs.f("alpha"), 1.0 / 6, x->dtype()) && gate->attrs.f("beta") == 0.5)
      return graph.add("hard_swish", {x}, {}, node.name);
    if (Node* inner = gate->is("tanh") ? made_by(gate->input(0), "softplus") : nullptr;
        inner && inner->input(0) == x)
      return graph.add("mish", {x}, {}, node.name);
  }
  return nullptr;
}

}  // namespace

PASS(fuse_activation, 330, "relu, clamp, sigmoid, silu, hard_swish, mish from their formulas") {
  return fuse_each(graph, context, [](Graph& graph, Node& node) -> Value* {
    if (!is_float(node.output()->dtype()) || !node.output()->type.ranked) return nullptr;
    for (auto rule : {relu, clamp, sigmoid, hard_sigmoid, gated})
      if (Value* value = rule(graph, node)) return value;
    return nullptr;
  });
}

}  // namespace anymps
