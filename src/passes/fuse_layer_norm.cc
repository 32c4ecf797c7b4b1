// SPDX-License-Identifier: Apache-2.0
// Finds layer and RMS normalization written out:
//   d = x - mean(x);  d / sqrt(mean(d * d) + e) * gamma + beta   ->  layer_norm(x, gamma, beta)
//   x / sqrt(mean(x * x) + e) * gamma                            ->  rms_norm(x, gamma)
// with the mean over the last axes. Square, quotient and root may be written in any of their forms.
#include <algorithm>

#include "passes/fuse.h"

namespace anymps {

namespace {

// The first of the axes that `node` averages, if they are the last ones and are kept as 1.
std::optional<int64_t> trailing_axis(const Node& node) {
  const int64_t rank = rank_of(node.input(0));
  if (rank < 1 || !node.attrs.b("keep_dims") || node.input(1)) return std::nullopt;
  if (node.attrs.s("empty_axes") != "all") return std::nullopt;
  std::vector<int64_t> axes = node.attrs.ints("axes");
  if (axes.empty()) return 0;
  for (int64_t& axis : axes)
    if (axis < 0) axis += rank;
  std::sort(axes.begin(), axes.end());
  for (size_t i = 0; i < axes.size(); ++i)
    if (axes[i] != rank - static_cast<int64_t>(axes.size() - i)) return std::nullopt;
  return axes.front();
}

// The value whose square this is.
Value* squared(const Value* value) {
  if (Node* node = made_by(value, "square")) return node->input(0);
  if (Node* node = made_by(value, "mul"); node && node->input(0) == node->input(1))
    return node->input(0);
  if (Node* node = made_by(value, "pow"); node && scalar_of(node->input(1)) == 2.0)
    return node->input(0);
  return nullptr;
}

// The value of which this is the square root.
Value* under_root(const Value* value) {
  if (Node* node = made_by(value, "sqrt")) return node->input(0);
  if (Node* node = made_by(value, "pow"); node && scalar_of(node->input(1)) == 0.5)
    return node->input(0);
  return nullptr;
}

// For  d / root(v)  and  d * (1 / root(v)):  d and v.
std::optional<std::pair<Value*, Value*>> over_root(const Node& node) {
  if (node.is("div") && node.attrs.s("rounding") == "none")
    if (Value* variance = under_root(node.input(1))) return {{node.input(0), variance}};
  if (!node.is("mul")) return std::nullopt;
  for (size_t i = 0; i < 2; ++i) {
    Value *d = node.input(i), *inverse = node.input(1 - i);
    if (Node* root = made_by(inverse, "rsqrt")) return {{d, root->input(0)}};
    if (Node* root = made_by(inverse, "reciprocal"))
      if (Value* variance = under_root(root->input(0))) return {{d, variance}};
    if (Node* quotient = made_by(inverse, "div"); quotient && scalar_of(quotient->input(0)) == 1.0)
      if (Value* variance = under_root(quotient->input(1))) return {{d, variance}};
    if (Node* power = made_by(inverse, "pow"); power && scalar_of(power->input(1)) == -0.5)
      return {{d, power->input(0)}};
  }
  return std::nullopt;
}

Value* normalization(Graph& graph, Node& node) {
  if (!is_float(node.output()->dtype())) return nullptr;
  auto parts = over_root(node);
  if (!parts || !same_shape(parts->first, node.output())) return nullptr;
  auto [d, variance] = *parts;
  double epsilon = 0;
  if (variance->producer)
    if (auto affine = as_affine(*variance->producer)) {
      if (affine->scale != 1) return nullptr;
      epsilon = affine->offset;
      variance = affine->source;
    }
  Node* mean_of_squares = made_by(variance, "reduce_mean");
  if (!mean_of_squares || epsilon < 0) return nullptr;
  auto axis = trailing_axis(*mean_of_squares);
  if (!axis || squared(mean_of_squares->input(0)) != d) return nullptr;
  const NamedAttrs attrs = {{"axis", *axis - rank_of(d)}, {"epsilon", epsilon}};
  if (Node* difference = made_by(d, "sub")) {
    Node* mean = made_by(difference->input(1), "reduce_mean");
    if (mean && mean->input(0) == difference->input(0) && trailing_axis(*mean) == axis)
      return graph.add_node(get_op("layer_norm"), {difference->input(0)}, attrs, node.name, 1)
          ->output();
  }
  return graph.add_node(get_op("rms_norm"), {d}, attrs, node.name, 1)->output();
}

// gamma or beta: exactly the normalised extents, perhaps with ones before them.
Value* as_parameter(Graph& graph, Value* value, const Node& norm) {
  const Dims& x = norm.output()->shape();
  if (!value->type.ranked || value->shape().size() > x.size()) return nullptr;
  const int64_t rank = rank_of(norm.output()), axis = norm.attrs.i("axis");
  const Dims extents(x.begin() + (axis < 0 ? axis + rank : axis), x.end());
  const Dims& shape = value->shape();
  if (shape.size() < extents.size()) return nullptr;
  const auto ones = shape.end() - static_cast<std::ptrdiff_t>(extents.size());
  if (!std::all_of(shape.begin(), ones, [](const Dim& dim) { return dim.is(1); })) return nullptr;
  if (!same_shape(Dims(ones, shape.end()), extents)) return nullptr;
  return reshaped(graph, value, extents, value->name);
}

// mul with gamma, add of beta.
Value* with_parameter(Graph& graph, Node& node) {
  const bool scales = node.is("mul");
  if (!scales && !node.is("add")) return nullptr;
  Value* result = nullptr;
  either_order(node, [&](Value* y, Value* parameter) {
    Node* norm = made_by(y, {"layer_norm", "rms_norm"});
    if (!norm || norm->outputs.size() != 1 || !single_use(graph, y)) return false;
    if (!same_shape(y, node.output()) || y == parameter) return false;
    if (scales ? norm->input(1) || norm->input(2) : norm->is("rms_norm") || norm->input(2))
      return false;
    Value* fitted = as_parameter(graph, parameter, *norm);
    if (!fitted) return false;
    std::vector<Value*> inputs = {norm->input(0), scales ? fitted : norm->input(1)};
    if (!scales) inputs.push_back(fitted);
    result = graph.add_node(*norm->op, inputs, norm->attrs.named(), norm->name, 1)->output();
    return true;
  });
  return result;
}

}  // namespace

PASS(fuse_layer_norm, 320, "layer and RMS normalization from means, roots and quotients") {
  return fuse_each(graph, context, [](Graph& graph, Node& node) -> Value* {
    if (!node.output()->type.ranked) return nullptr;
    Value* value = normalization(graph, node);
    return value ? value : with_parameter(graph, node);
  });
}

}  // namespace anymps
