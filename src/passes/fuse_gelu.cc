// SPDX-License-Identifier: Apache-2.0
// Finds GELU written out, in any order of its factors:
//   x * 0.5 * (1 + erf(x / sqrt(2)))                              ->  gelu(x)
//   x * 0.5 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3)))     ->  gelu(x) {approximate="tanh"}
// Arguments are compared as polynomials in x, so it does not matter how they are bracketed.
#include <array>
#include <cmath>

#include "passes/fuse.h"

namespace anymps {

namespace {

constexpr int kMaxDepth = 8;
using Cubic = std::array<double, 4>;  // coefficients of 1, x, x^2, x^3

std::optional<Cubic> product(const Cubic& a, const Cubic& b) {
  Cubic result{};
  for (size_t i = 0; i < 4; ++i)
    for (size_t k = 0; k < 4; ++k) {
      if (a[i] == 0 || b[k] == 0) continue;
      if (i + k > 3) return std::nullopt;
      result[i + k] += a[i] * b[k];
    }
  return result;
}

// `value` as a polynomial in x; what numbers it has.
std::optional<Cubic> polynomial(const Value* value, const Value* x, StoredNumbers& stored,
                                int depth = 0) {
  if (value == x) return Cubic{0, 1, 0, 0};
  if (auto number = scalar_of(value)) {
    stored.add(*number);
    return Cubic{*number, 0, 0, 0};
  }
  if (!value->producer || depth > kMaxDepth) return std::nullopt;
  const Node& node = *value->producer;
  if (!node.op->is(kElementwise)) return std::nullopt;
  auto part = [&](size_t i) { return polynomial(node.input(i), x, stored, depth + 1); };
  if (node.is("square")) {
    auto a = part(0);
    return a ? product(*a, *a) : std::nullopt;
  }
  if (node.inputs.size() != 2) return std::nullopt;
  auto a = part(0), b = a ? part(1) : std::nullopt;
  if (!b) return std::nullopt;
  if (node.is("mul")) return product(*a, *b);
  if (node.is("add") || node.is("sub")) {
    for (size_t i = 0; i < 4; ++i) (*a)[i] += node.is("add") ? (*b)[i] : -(*b)[i];
    return a;
  }
  auto number = scalar_of(node.input(1));
  if (!number) return std::nullopt;
  if (node.is("div") && *number != 0) {
    stored.add(*number);
    for (double& coefficient : *a) coefficient /= *number;
    return a;
  }
  if (node.is("pow") && *number == 2) return product(*a, *a);
  if (node.is("pow") && *number == 3) {
    auto squared = product(*a, *a);
    return squared ? product(*squared, *a) : std::nullopt;
  }
  return std::nullopt;
}

bool same(const std::optional<Cubic>& a, const Cubic& b, DType dtype) {
  if (!a) return false;
  for (size_t i = 0; i < 4; ++i)
    if (!near((*a)[i], b[i], dtype)) return false;
  return true;
}

// The erf or tanh node from which `value` is made by adding and multiplying numbers.
const Node* bell_of(const Value* value) {
  for (int depth = 0; depth < kMaxDepth && value->producer; ++depth) {
    const Node& node = *value->producer;
    if (node.is("erf") || node.is("tanh")) return &node;
    auto affine = as_affine(node);
    if (!affine) return nullptr;
    value = affine->source;
  }
  return nullptr;
}

// The factors of a product: one number and the values that are not numbers.
struct Factors {
  double number = 1;
  std::vector<Value*> values;
};

void collect(const Graph& graph, Value* value, bool root, Factors& factors, StoredNumbers& stored,
             int depth = 0) {
  Node* node = made_by(value, {"mul", "div"});
  if (node && (root || single_use(graph, value)) && depth < kMaxDepth) {
    if (auto affine = as_affine(*node)) {
      stored.add(affine->scale);
      factors.number *= affine->scale;
      return collect(graph, affine->source, false, factors, stored, depth + 1);
    }
    if (node->is("mul")) {
      collect(graph, node->input(0), false, factors, stored, depth + 1);
      return collect(graph, node->input(1), false, factors, stored, depth + 1);
    }
  }
  factors.values.push_back(value);
}

Value* gelu(Graph& graph, Node& root, DTypeSet rounded) {
  if (!root.is("mul") && !root.is("div")) return nullptr;
  if (!is_float(root.output()->dtype())) return nullptr;
  Factors factors;
  StoredNumbers of_product(root.output()->dtype(), rounded);
  collect(graph, root.output(), true, factors, of_product);
  if (factors.values.size() != 2) return nullptr;
  for (size_t i = 0; i < 2; ++i) {
    Value *x = factors.values[i], *gate = factors.values[1 - i];
    const Node* bell = bell_of(gate);
    if (!bell || !same_shape(x, root.output())) continue;
    StoredNumbers stored = of_product;
    auto outer = polynomial(gate, bell->output(), stored);
    if (!outer) continue;
    auto inner = polynomial(bell->input(0), x, stored);
    const DType dtype = stored.dtype();
    for (double& coefficient : *outer) coefficient *= factors.number;
    if (!same(outer, {0.5, 0.5, 0, 0}, dtype)) continue;
    if (bell->is("erf") && same(inner, {0, std::sqrt(0.5), 0, 0}, dtype))
      return graph.add("gelu", {x}, {}, root.name);
    const double slope = std::sqrt(2 / std::acos(-1.0));
    if (bell->is("tanh") && same(inner, {0, slope, 0, slope * 0.044715}, dtype))
      return graph.add("gelu", {x}, {{"approximate", "tanh"}}, root.name);
  }
  return nullptr;
}

}  // namespace

PASS(fuse_gelu, 310, "x * 0.5 * (1 + erf(x / sqrt(2))) -> gelu(x), and the tanh form") {
  return fuse_each(graph, context,
                   [&](Graph& graph, Node& node) { return gelu(graph, node, context.rounded); });
}

}  // namespace anymps
