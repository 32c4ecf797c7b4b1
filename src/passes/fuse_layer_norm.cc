// SPDX-License-Identifier: Apache-2.0
// Finds layer and RMS normalization written out:
//   d = x - mean(x);  d / sqrt(mean(d * d) + e) * gamma + beta   ->  layer_norm(x, gamma, beta)
//   x / sqrt(mean(x * x) + e) * gamma                            ->  rms_norm(x, gamma)
//   x * t + (beta - mean(x) * t),  t = gamma / sqrt(…)           ->  layer_norm(x, gamma, beta)
// with the mean over the last axes. Square, quotient and root may be written in any of their forms,
// and gamma may be multiplied with any of the factors.
#include <algorithm>
#include <span>

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

// The value of which this is the reciprocal of the square root.
Value* under_inverse_root(const Value* value) {
  if (Node* root = made_by(value, "rsqrt")) return root->input(0);
  if (Node* root = made_by(value, "reciprocal")) return under_root(root->input(0));
  if (Node* quotient = made_by(value, "div"); quotient && scalar_of(quotient->input(0)) == 1.0)
    return under_root(quotient->input(1));
  if (Node* power = made_by(value, "pow"); power && scalar_of(power->input(1)) == -0.5)
    return power->input(0);
  return nullptr;
}

// gamma / root(variance), gamma being null where there is none.
struct Factor {
  Value *variance = nullptr, *gamma = nullptr;
};

std::optional<Factor> factor_of(const Value* value) {
  if (Value* variance = under_inverse_root(value)) return Factor{variance, nullptr};
  if (Node* product = made_by(value, "mul"))
    for (size_t i = 0; i < 2; ++i)
      if (Value* variance = under_inverse_root(product->input(i)))
        return Factor{variance, product->input(1 - i)};
  if (Node* quotient = made_by(value, "div"); quotient && quotient->attrs.s("rounding") == "none")
    if (Value* variance = under_root(quotient->input(1)))
      return Factor{variance, quotient->input(0)};
  return std::nullopt;
}

// The mean of the squares of `d`, plus epsilon.
struct Spread {
  Value* d = nullptr;
  double epsilon = 0;
  int64_t axis = 0;
};

std::optional<Spread> spread_of(Value* variance) {
  Spread spread;
  if (variance->producer)
    if (auto affine = as_affine(*variance->producer)) {
      if (affine->scale != 1) return std::nullopt;
      spread.epsilon = affine->offset;
      variance = affine->source;
    }
  Node* mean = made_by(variance, "reduce_mean");
  const auto axis = mean ? trailing_axis(*mean) : std::nullopt;
  if (!axis || spread.epsilon < 0) return std::nullopt;
  spread.axis = *axis;
  spread.d = squared(mean->input(0));
  return spread.d ? std::optional(spread) : std::nullopt;
}

// The x of  x - mean(x), or of its negative, where only the square counts.
Value* centred(const Value* d, int64_t axis, bool either_sign) {
  Node* difference = made_by(d, "sub");
  for (size_t i = 0; difference && i < (either_sign ? 2u : 1u); ++i) {
    Node* mean = made_by(difference->input(1 - i), "reduce_mean");
    if (mean && mean->input(0) == difference->input(i) && trailing_axis(*mean) == axis)
      return difference->input(i);
  }
  return nullptr;
}

// gamma or beta: exactly the normalised extents of `y`, perhaps with ones before them. `axis`, the
// first of these, counts from the end.
std::optional<Dims> parameter_extents(const Value* value, const Value* y, int64_t axis) {
  const Dims &shape = value->shape(), &all = y->shape();
  if (!value->type.ranked || shape.size() > all.size() || std::ssize(shape) < -axis)
    return std::nullopt;
  const Dims extents(all.end() + axis, all.end());
  const auto ones = shape.end() + axis;
  if (!std::all_of(shape.begin(), ones, [](const Dim& dim) { return dim.is(1); }) ||
      !same_shape(Dims(ones, shape.end()), extents))
    return std::nullopt;
  return extents;
}

// The normalization of `x`, or without the mean if that is null, with gamma and beta where they are
// given; null if these do not fit.
Value* normalized(Graph& graph, const Spread& spread, Value* x, Value* gamma, Value* beta,
                  const std::string& name) {
  const int64_t axis = spread.axis - rank_of(spread.d);
  std::vector<Value*> inputs = {x ? x : spread.d, gamma, beta};
  for (Value* parameter : {gamma, beta})
    if (parameter && !parameter_extents(parameter, spread.d, axis)) return nullptr;
  for (Value*& parameter : std::span(inputs).subspan(1)) {
    if (!parameter) continue;
    parameter =
        reshaped(graph, parameter, *parameter_extents(parameter, spread.d, axis), parameter->name);
    if (!parameter) return nullptr;
  }
  while (!inputs.back()) inputs.pop_back();
  return graph
      .add_node(get_op(x ? "layer_norm" : "rms_norm"), inputs,
                {{"axis", axis}, {"epsilon", spread.epsilon}}, name, 1)
      ->output();
}

// d / root(v),  d * (1 / root(v)),  (d * gamma) / root(v),  d * (gamma / root(v))
Value* normalization(Graph& graph, Node& node) {
  if (!is_float(node.output()->dtype())) return nullptr;
  const auto match = [&](Value* numerator, const Factor& factor) -> Value* {
    const auto spread = spread_of(factor.variance);
    if (!spread || !same_shape(spread->d, node.output())) return nullptr;
    Value* gamma = factor.gamma;
    if (Node* product = made_by(numerator, "mul"); product && numerator != spread->d && !gamma)
      for (size_t i = 0; i < 2; ++i)
        if (product->input(i) == spread->d) {
          gamma = product->input(1 - i);
          numerator = spread->d;
        }
    Value* x = centred(numerator, spread->axis, false);
    if (x ? centred(spread->d, spread->axis, true) != x : numerator != spread->d) return nullptr;
    return normalized(graph, *spread, x, gamma, nullptr, node.name);
  };
  if (node.is("div") && node.attrs.s("rounding") == "none")
    if (Value* variance = under_root(node.input(1)))
      return match(node.input(0), {variance, nullptr});
  if (!node.is("mul")) return nullptr;
  for (size_t i = 0; i < 2; ++i)
    if (const auto factor = factor_of(node.input(1 - i)))
      if (Value* value = match(node.input(i), *factor)) return value;
  return nullptr;
}

// x * t + (beta - mean * t)
Value* scaled_and_shifted(Graph& graph, Node& node) {
  if (!node.is("add") || !is_float(node.output()->dtype())) return nullptr;
  Value* result = nullptr;
  either_order(node, [&](Value* scaled, Value* shift) {
    Node *product = made_by(scaled, "mul"), *rest = made_by(shift, "sub");
    Node* moved = rest ? made_by(rest->input(1), "mul") : nullptr;
    if (!product || !moved || !same_shape(scaled, node.output())) return false;
    for (size_t i = 0; i < 2 && !result; ++i)
      for (size_t k = 0; k < 2 && !result; ++k) {
        Value *x = product->input(i), *t = product->input(1 - i);
        Node* mean = made_by(moved->input(k), "reduce_mean");
        if (moved->input(1 - k) != t || !mean || mean->input(0) != x) continue;
        const auto factor = factor_of(t);
        const auto spread = factor ? spread_of(factor->variance) : std::nullopt;
        if (!spread || trailing_axis(*mean) != spread->axis) continue;
        if (centred(spread->d, spread->axis, true) != x) continue;
        result = normalized(graph, *spread, x, factor->gamma, rest->input(0), node.name);
      }
    return result != nullptr;
  });
  return result;
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
    const int64_t axis = norm->attrs.i("axis");
    const auto extents = parameter_extents(parameter, y, axis < 0 ? axis : axis - rank_of(y));
    Value* fitted = extents ? reshaped(graph, parameter, *extents, parameter->name) : nullptr;
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
    if (Value* value = normalization(graph, node)) return value;
    if (Value* value = scaled_and_shifted(graph, node)) return value;
    return with_parameter(graph, node);
  });
}

}  // namespace anymps
