// SPDX-License-Identifier: Apache-2.0
// Rewrites that need no thought: nodes that change nothing go, chains of the same kind become one,
// shapes that are computed but known become attributes. Each rule is one function from a node to
// the value that replaces it (null: the rule does not apply).
#include <algorithm>
#include <map>
#include <unordered_set>
#include <vector>

#include "graph/known.h"
#include "ops/elementwise/elementwise_program.h"
#include "passes/match.h"
#include "passes/pass.h"

namespace anymps {

namespace {

using Rule = Value* (*)(Graph&, Node&);
using Ints = std::vector<int64_t>;

bool all_equal(const std::optional<Ints>& ints, int64_t value) {
  return ints && std::all_of(ints->begin(), ints->end(), [&](int64_t i) { return i == value; });
}

// The input, if the op cannot have changed its shape.
Value* same(Node& node) {
  return same_shape(node.input(0), node.output()) ? node.input(0) : nullptr;
}

Value* no_arithmetic(Graph&, Node& node) {
  auto affine = as_affine(node);
  return affine && affine->scale == 1 && affine->offset == 0 ? affine->source : nullptr;
}

Value* power(Graph& graph, Node& node) {
  auto exponent = scalar_of(node.input(1));
  if (!exponent || !same(node) || !is_float(node.output()->dtype())) return nullptr;
  if (*exponent == 1) return node.input(0);
  return *exponent == 2 ? graph.add("square", {node.input(0)}, {}, node.name) : nullptr;
}

Value* no_cast(Graph&, Node& node) {
  return node.input(0)->dtype() == node.output()->dtype() ? node.input(0) : nullptr;
}

Value* transposes(Graph& graph, Node& node) {
  Value* source = node.input(0);
  if (!source->type.ranked) return nullptr;
  Ints perm = perm_of(node);
  if (std::is_sorted(perm.begin(), perm.end())) return source;
  if (Node* inner = made_by(source, "transpose"); inner && inner->input(0)->type.ranked) {
    const Ints first = perm_of(*inner);
    for (int64_t& axis : perm) axis = first[axis];
    if (std::is_sorted(perm.begin(), perm.end())) return inner->input(0);
    return graph.add("transpose", {inner->input(0)}, {{"perm", perm}}, node.name);
  }
  // Only axes of extent 1 move: the elements stay in order.
  int64_t last = -1;
  for (int64_t axis : perm) {
    if (source->shape()[axis].is(1)) continue;
    if (axis < last) return nullptr;
    last = axis;
  }
  return reshaped(graph, source, node.output()->shape(), node.name);
}

bool reshape_like(const Value* value) {
  return made_by(value, {"reshape", "flatten", "squeeze", "unsqueeze"}) != nullptr;
}

// Whether a shape has an extent that the caller tells by its name. As -1 it would fit any feed;
// kept, it is an error where the elements are not as many.
bool is_bound(const Node& reshape) {
  std::vector<const Value*> open{reshape.is("reshape") ? reshape.input(1) : nullptr};
  std::unordered_set<const Value*> seen{nullptr};
  while (!open.empty()) {
    const Value* value = open.back();
    open.pop_back();
    if (!seen.insert(value).second || !value->producer || !value->type.content) continue;
    if (value->producer->is("dimension")) return true;
    const auto& inputs = value->producer->inputs;
    open.insert(open.end(), inputs.begin(), inputs.end());
  }
  return false;
}

Value* reshapes(Graph& graph, Node& node) {
  if (!node.output()->type.ranked || !node.input(0)->type.ranked) return nullptr;
  if (Value* source = same(node)) return source;
  Value* source = node.input(0);
  if (is_bound(node)) return nullptr;
  if (reshape_like(source) && !is_bound(*source->producer) &&
      source->producer->input(0)->type.ranked) {
    Value* result = reshaped(graph, source->producer->input(0), node.output()->shape(), node.name);
    if (result) return result;
  }
  if (!node.is("reshape") || !node.input(1)) return nullptr;
  auto shape = reshape_attr(source->shape(), node.output()->shape());
  return shape ? graph.add("reshape", {source}, {{"shape", *shape}}, node.name) : nullptr;
}

Value* no_slice(Graph&, Node& node) {
  return all_equal(known_ints(node, 4, "steps"), 1) ? same(node) : nullptr;
}

Value* no_pad(Graph&, Node& node) {
  return all_equal(known_ints(node, 1, "pads"), 0) ? same(node) : nullptr;
}

Value* one_of_one(Graph&, Node& node) {
  return node.inputs.size() == 1 && node.outputs.size() == 1 ? same(node) : nullptr;
}

// One side of a condition that is the same everywhere.
Value* chosen(Graph&, Node& node) {
  auto condition = scalar_of(node.input(0));
  if (!condition) return nullptr;
  Value* side = node.input(*condition != 0 ? 1 : 2);
  return same_shape(side, node.output()) ? side : nullptr;
}

// An operand that has one value everywhere is that value: broadcasting does the rest.
bool take_value_of_fill(Graph& graph, Node& node) {
  bool changed = false;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    Node* fill = made_by(node.input(i), "fill");
    Value* value = fill ? fill->input(1) : nullptr;
    if (!value || !value->type.ranked || !value->shape().empty() ||
        value->dtype() != node.input(i)->dtype())
      continue;
    bool others_tell_shape = false;
    for (size_t k = 0; k < node.inputs.size(); ++k)
      others_tell_shape = others_tell_shape ||
                          (k != i && node.inputs[k] && same_shape(node.inputs[k], node.output()));
    if (!others_tell_shape) continue;
    graph.set_input(&node, i, value);
    changed = true;
  }
  return changed;
}

// What other passes and kernels would have to look up lies open in the attribute of the same name.
bool take_known_inputs(Graph& graph, Node& node) {
  if (node.op->is(kImpure) || node.op->is(kStructural) || node.op->attrs.empty()) return false;
  // That the pads are about some of the axes only an input can say.
  if (node.is("pad") && node.input(3)) return false;
  bool changed = false;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const Value* value = node.inputs[i];
    if (!value || (!value->is_constant() && !knows_elements(value->type))) continue;
    const ConstantPtr constant =
        value->is_constant() ? value->constant : constant_of_elements(value->type);
    const auto attribute = as_attribute(*node.op, i, *constant);
    if (!attribute) continue;
    node.attrs.set(NamedAttr(node.op->inputs[i].name, *attribute));
    graph.set_input(&node, i, nullptr);
    changed = true;
  }
  return changed;
}

const std::map<std::string_view, Rule>& rules() {
  static const std::map<std::string_view, Rule> table = {
      {"identity", [](Graph&, Node& node) { return node.input(0); }},
      {"add", no_arithmetic},
      {"sub", no_arithmetic},
      {"mul", no_arithmetic},
      {"div", no_arithmetic},
      {"pow", power},
      {"cast", no_cast},
      {"transpose", transposes},
      {"reshape", reshapes},
      {"flatten", reshapes},
      {"squeeze", reshapes},
      {"unsqueeze", reshapes},
      {"slice", no_slice},
      {"pad", no_pad},
      {"concat", one_of_one},
      {"split", one_of_one},
      {"expand", [](Graph&, Node& node) { return same(node); }},
      {"tile", [](Graph&, Node& node) { return same(node); }},
      {"where", chosen},
  };
  return table;
}

}  // namespace

PASS(simplify, 110, "x * 1 -> x, transposes and reshapes composed, known shapes as attributes") {
  Rewriter rewriter(graph);
  bool told = false;
  const int changes = rewriter.each([&](Node& node) {
    bool changed = is_elementwise(*node.op, node.attrs) && take_value_of_fill(graph, node);
    if (take_known_inputs(graph, node)) changed = told = true;
    auto rule = rules().find(node.op->name);
    if (rule == rules().end()) return changed;
    Value* value = rule->second(graph, node);
    return (value && rewriter.replace(node.output(), value)) || changed;
  });
  if (told) graph.infer_again();  // floats are known as an attribute, not as an input
  return changes;
}

}  // namespace anymps
