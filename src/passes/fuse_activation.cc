// SPDX-License-Identifier: Apache-2.0
// Finds activations written out:
//   max(x, 0)                                     ->  relu(x)
//   min(max(x, a), b), max(min(x, b), a)          ->  clamp(x) {min=a, max=b}
//   clamp(clamp(x, a, b), c, d), clamp(relu(x), c, d)  ->  clamp(x)
//   max(x, a * x) with 0 < a < 1                  ->  leaky_relu(x) {alpha=a}
//   1 / (1 + exp(-x))                             ->  sigmoid(x)
//   x * sigmoid(x)                                ->  silu(x)
//   clamp(x + 3, 0, 6) / 6                        ->  hard_sigmoid(x) {alpha=1/6, beta=0.5}
//   clamp(a * x + b, 0, 1)                        ->  hard_sigmoid(x) {alpha=a, beta=b}
//   x * hard_sigmoid(x), x * clamp(x + 3, 0, 6) / 6  ->  hard_swish(x)
//   x * tanh(softplus(x))                         ->  mish(x)     (also of log(1 + exp(x)))
// GELU has a separate pass.

#include <algorithm>
#include <limits>

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

// The number and the other operand of a min or max that passes NaN on.
std::optional<std::pair<Value*, double>> bounded(const Node& node, const char* op) {
  if (!node.is(op) || !node.attrs.b("propagate_nan")) return std::nullopt;
  for (size_t i = 0; i < 2; ++i)
    if (const auto bound = scalar_of(node.input(1 - i));
        bound && same_shape(node.input(i), node.output()))
      return {{node.input(i), *bound}};
  return std::nullopt;
}

// The inner node is used here alone.
Value* clamp(Graph& graph, Node& node) {
  for (const bool outer_is_min : {true, false}) {
    const auto outer = bounded(node, outer_is_min ? "min" : "max");
    if (!outer || !outer->first->producer || !single_use(graph, outer->first)) continue;
    const Node& inner_node = *outer->first->producer;
    auto inner = bounded(inner_node, outer_is_min ? "max" : "min");
    if (!inner && outer_is_min && inner_node.is("relu")) inner.emplace(inner_node.input(0), 0.0);
    if (!inner) continue;
    const double low = outer_is_min ? inner->second : outer->second;
    const double high = outer_is_min ? outer->second : inner->second;
    if (low <= high)
      return graph.add("clamp", {inner->first}, {{"min", low}, {"max", high}}, node.name);
  }
  return nullptr;
}

// One bound after the other, as some exporters write relu6. The inner node is used here alone.
Value* nested_clamp(Graph& graph, Node& node) {
  if (!node.is("clamp") || !single_use(graph, node.input(0))) return nullptr;
  const Node* inner_node = made_by(node.input(0), {"clamp", "relu"});
  const auto outer = clamp_bounds(node);
  if (!inner_node || !outer || !same_shape(inner_node->input(0), node.output())) return nullptr;
  constexpr std::pair kRelu{0.0, std::numeric_limits<double>::infinity()};
  const auto inner = inner_node->is("relu") ? kRelu : clamp_bounds(*inner_node);
  if (!inner) return nullptr;
  return graph.add("clamp", {inner_node->input(0)},
                   {{"min", std::clamp(inner->first, outer->first, outer->second)},
                    {"max", std::clamp(inner->second, outer->first, outer->second)}},
                   node.name);
}

Value* leaky_relu(Graph& graph, Node& node) {
  if (!node.is("max") || !node.attrs.b("propagate_nan")) return nullptr;
  for (size_t i = 0; i < 2; ++i) {
    Node* product = node.input(i)->producer;
    const auto affine = product ? as_affine(*product) : std::nullopt;
    if (affine && affine->offset == 0 && affine->scale > 0 && affine->scale < 1 &&
        affine->source == node.input(1 - i))
      return graph.add("leaky_relu", {affine->source}, {{"alpha", affine->scale}}, node.name);
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

bool is_sixth(double number, DType dtype, DTypeSet rounded) {
  StoredNumbers stored(dtype, rounded);
  stored.add(number);
  return near(number, 1.0 / 6, stored.dtype());
}

Value* hard_sigmoid(Graph& graph, Node& node, DTypeSet rounded) {
  auto affine = as_affine(node);
  if (!affine || affine->offset != 0) return nullptr;
  if (!is_sixth(affine->scale, node.output()->dtype(), rounded)) return nullptr;
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

// What lies between 0 and 1 is a number times x plus a number.
Value* clamped_line(Graph& graph, Node& node) {
  if (!node.is("clamp")) return nullptr;
  const auto bounds = clamp_bounds(node);
  if (!bounds || bounds->first != 0 || bounds->second != 1) return nullptr;
  Affine line{node.input(0), 1, 0};
  while (line.source->producer && single_use(graph, line.source)) {
    const auto inner = as_affine(*line.source->producer);
    if (!inner) break;
    line = {inner->source, line.scale * inner->scale, line.scale * inner->offset + line.offset};
  }
  if (line.scale == 1 || line.offset == 0) return nullptr;
  return graph.add("hard_sigmoid", {line.source}, {{"alpha", line.scale}, {"beta", line.offset}},
                   node.name);
}

// The x of  log(1 + exp(x)), which may be an op.
Value* under_softplus(const Value* value) {
  if (Node* node = made_by(value, "softplus")) return node->input(0);
  Node* logarithm = made_by(value, "log");
  Node* sum = logarithm ? logarithm->input(0)->producer : nullptr;
  const auto affine = sum ? as_affine(*sum) : std::nullopt;
  if (!affine || affine->scale != 1 || affine->offset != 1) return nullptr;
  Node* exp = made_by(affine->source, "exp");
  return exp ? exp->input(0) : nullptr;
}

// x times a function of x.
Value* gated(Graph& graph, Node& node, DTypeSet rounded) {
  if (!node.is("mul")) return nullptr;
  for (size_t i = 0; i < 2; ++i) {
    Value* x = node.input(i);
    if (!same_shape(x, node.output())) continue;
    Node* gate = node.input(1 - i)->producer;
    if (!gate) continue;
    if (gate->is("sigmoid") && gate->input(0) == x) return graph.add("silu", {x}, {}, node.name);
    if (gate->is("hard_sigmoid") && gate->input(0) == x &&
        is_sixth(gate->attrs.f("alpha"), x->dtype(), rounded) && gate->attrs.f("beta") == 0.5)
      return graph.add("hard_swish", {x}, {}, node.name);
    if (gate->is("tanh") && under_softplus(gate->input(0)) == x)
      return graph.add("mish", {x}, {}, node.name);
  }
  return nullptr;
}

}  // namespace

PASS(fuse_activation, 330, "relu, clamp, sigmoid, silu, hard_swish, mish from their formulas") {
  return fuse_each(graph, context, [&](Graph& graph, Node& node) -> Value* {
    if (!is_float(node.output()->dtype()) || !node.output()->type.ranked) return nullptr;
    for (auto rule : {clamp, nested_clamp, relu, leaky_relu, sigmoid})
      if (Value* value = rule(graph, node)) return value;
    if (Value* value = hard_sigmoid(graph, node, context.rounded)) return value;
    if (Value* value = clamped_line(graph, node)) return value;
    return gated(graph, node, context.rounded);
  });
}

}  // namespace anymps
