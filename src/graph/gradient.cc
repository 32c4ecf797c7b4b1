// SPDX-License-Identifier: Apache-2.0
#include "graph/gradient.h"

#include <algorithm>

#include "graph/gradient_walk.h"
#include "graph/known.h"

namespace anymps {

bool differentiable(const Value& value) {
  return value.type.container == Container::kTensor && contains(kFloat | kComplex, value.dtype());
}

GradientWalk::GradientWalk(Graph& graph, std::vector<Node*> nodes, const std::vector<Value*>& xs)
    : graph_(graph), nodes_(std::move(nodes)), needed_(xs.begin(), xs.end()) {
  for (const Node* node : nodes_) {
    if (!std::any_of(node->inputs.begin(), node->inputs.end(),
                     [&](const Value* value) { return value && needed_.contains(value); }))
      continue;
    const GradientRule* rule = find_gradient(*node->op);
    if (rule && rule->kind == GradientRule::Kind::kZero) continue;
    for (const Value* value : node->outputs)
      if (differentiable(*value)) needed_.insert(value);
  }
}

void GradientWalk::give(Value* value, Value* gradient) {
  Value*& sum = gradients_[value];
  sum = sum ? graph_.add("add", {sum, gradient}) : gradient;
}

Value* GradientWalk::of(Value* value) const {
  const auto it = gradients_.find(value);
  return it == gradients_.end() ? nullptr : it->second;
}

void GradientWalk::run() {
  for (size_t i = nodes_.size(); i-- > 0;) step(*nodes_[i]);
}

void GradientWalk::step(Node& node) {
  std::vector<Value*> dys(node.outputs.size(), nullptr);
  std::vector<bool> wanted(node.inputs.size(), false);
  bool any_dy = false, any_wanted = false, any_complex = false;
  for (size_t i = 0; i < dys.size(); ++i) {
    if (!needs(node.outputs[i])) continue;
    dys[i] = of(node.outputs[i]);
    any_dy |= dys[i] != nullptr;
    any_complex |= is_complex(node.outputs[i]->dtype());
  }
  for (size_t i = 0; i < wanted.size(); ++i) {
    const Value* value = node.inputs[i];
    wanted[i] = value && differentiable(*value) && needs(value);
    any_wanted = any_wanted || wanted[i];
    any_complex |= wanted[i] && is_complex(value->dtype());
  }
  if (!any_dy || !any_wanted) return;
  const GradientRule* rule = find_gradient(*node.op);
  if (!rule || rule->kind == GradientRule::Kind::kRefused)
    fail(Code::kUnsupported, "[gradient] op '{}' has no gradient{}{} ({})", node.op->name,
         rule ? ": " : "", rule ? rule->reason : "", node.label());
  if (any_complex && !rule->complex)
    fail(Code::kUnsupported, "[gradient] op '{}' has no gradient for complex numbers ({})",
         node.op->name, node.label());
  GraphGradientBuilder builder(graph_);
  GradientContext ctx(builder,
                      {*node.op, node.attrs, node.inputs, node.outputs, node.name, node.label()},
                      std::move(dys), std::move(wanted));
  rule->fn(ctx);
  for (size_t i = 0; i < ctx.results().size(); ++i)
    if (ctx.results()[i]) give(node.inputs[i], ctx.results()[i]);
}

const ValueType& GraphGradientBuilder::type(const Value& value) const { return value.type; }
const std::string& GraphGradientBuilder::name(const Value& value) const { return value.name; }

std::optional<std::vector<int64_t>> GraphGradientBuilder::known_ints(const Value& value) const {
  return anymps::known_ints(value);
}

std::vector<Value*> GraphGradientBuilder::add(const Op& op, std::vector<Value*> inputs,
                                              const NamedAttrs& attrs, const std::string& name,
                                              size_t outputs) {
  return graph_.add_node(op, std::move(inputs), attrs, name, outputs)->outputs;
}
Value* GraphGradientBuilder::scalar(DType dtype, double number) {
  return graph_.scalar(dtype, number);
}
Value* GraphGradientBuilder::ints(const std::vector<int64_t>& values) {
  return graph_.ints(values);
}

std::vector<Value*> GraphGradientBuilder::pull_back(const Seeds& seeds,
                                                    const std::vector<Value*>& xs) {
  // The nodes that the function has just added, and no others: its inputs may depend on each other.
  std::vector<Node*> added;
  for (auto it = graph_.nodes().rbegin(); it != graph_.nodes().rend() && it->get() != last_; ++it)
    added.push_back(it->get());
  std::reverse(added.begin(), added.end());
  GradientWalk walk(graph_, std::move(added), xs);
  for (const auto& [y, dy] : seeds) walk.give(y, dy);
  walk.run();
  std::vector<Value*> results;
  for (Value* x : xs) results.push_back(walk.of(x));
  return results;
}

Value* filled_like(Graph& graph, Value* like, double number) {
  const ValueType& type = like->type;
  Value* value = graph.scalar(type.dtype, number);
  if (!type.static_shape()) return graph.add("fill", {graph.add("shape", {like}), value});
  const Shape shape = to_shape(type.shape);
  if (shape.empty()) return value;
  return graph.add("fill", {nullptr, value},
                   {{"shape", std::vector<int64_t>(shape.begin(), shape.end())}});
}

namespace {

void check_argument(const Value* value, const char* what) {
  require(value != nullptr, "[gradient] {} is null", what);
  require(differentiable(*value), "[gradient] {} '{}' is {}, must be a tensor of floats", what,
          value->name, to_string(value->type));
}

// Nodes that gradient functions made and nothing uses in the end.
void erase_unused(Graph& graph, const std::unordered_set<const Node*>& kept,
                  const std::vector<Value*>& results) {
  const std::unordered_set<const Value*> used(results.begin(), results.end());
  std::vector<Node*> nodes = graph.node_list();
  for (size_t i = nodes.size(); i-- > 0;) {
    Node* node = nodes[i];
    if (kept.contains(node) || node->op->is(kImpure)) continue;
    const bool needed =
        std::any_of(node->outputs.begin(), node->outputs.end(), [&](const Value* value) {
          return !value->users.empty() || used.contains(value) || graph.is_output(value);
        });
    if (!needed) graph.erase(node);
  }
}

}  // namespace

std::vector<Value*> gradient(Graph& graph, Value* y, const std::vector<Value*>& xs, Value* seed,
                             bool all_reachable) {
  check_argument(y, "y");
  for (const Value* x : xs) check_argument(x, "x");
  if (seed) {
    check_argument(seed, "the seed");
    require(seed->dtype() == y->dtype(), "[gradient] the seed is {}, y is {}",
            to_string(seed->type), to_string(y->type));
  } else {
    require(!is_complex(y->dtype()), "[gradient] y '{}' is complex: it needs a seed", y->name);
  }
  const std::vector<Node*> before = graph.node_list();
  graph.insert_before(nullptr);
  GradientWalk walk(graph, before, xs);
  walk.give(y, seed ? seed : filled_like(graph, y, 1));
  if (walk.needs(y)) walk.run();
  std::vector<Value*> results;
  for (Value* x : xs) {
    Value* result = walk.needs(y) ? walk.of(x) : nullptr;
    require(result || !all_reachable, "[gradient] y '{}' does not depend on '{}'", y->name,
            x->name);
    results.push_back(result ? result : filled_like(graph, x, 0));
  }
  erase_unused(graph, {before.begin(), before.end()}, results);
  return results;
}

std::vector<Value*> pull_back(Graph& graph, const GradientSeeds& seeds,
                              const std::vector<Value*>& xs) {
  const std::vector<Node*> before = graph.node_list();
  graph.insert_before(nullptr);
  GradientWalk walk(graph, before, xs);
  for (const auto& [y, dy] : seeds)
    if (walk.needs(y)) walk.give(y, dy);
  walk.run();
  std::vector<Value*> results;
  for (Value* x : xs) results.push_back(walk.of(x));
  erase_unused(graph, {before.begin(), before.end()}, results);
  return results;
}

}  // namespace anymps
