// SPDX-License-Identifier: Apache-2.0
// The verifier: what must hold between any two passes. It recomputes every node's types and
// compares them with what the graph says, so that a pass that lies is caught where it lied.
#include <algorithm>
#include <unordered_set>

#include "graph/graph.h"

namespace anymps {

namespace {

bool compatible(const ValueType& said, const ValueType& found) {
  if (said.dtype != found.dtype || said.container != found.container) return false;
  if (!said.ranked || !found.ranked) return true;
  if (said.shape.size() != found.shape.size()) return false;
  for (size_t i = 0; i < said.shape.size(); ++i)
    if (said.shape[i].known() && found.shape[i].known() && !(said.shape[i] == found.shape[i]))
      return false;
  return true;
}

}  // namespace

void verify(const Graph& graph, const std::string& after) {
  const std::string when = after.empty() ? "" : fmt::format(" after pass '{}'", after);
  std::unordered_set<const Value*> defined;
  std::unordered_set<std::string> names;
  for (const Value* value : graph.values()) {
    if (!names.insert(value->name).second)
      fail(Code::kInternal, "[verify] two values are called '{}'{}", value->name, when);
    if (!value->producer) defined.insert(value);
  }
  for (const auto& node : graph.nodes()) {
    std::vector<const ValueType*> types;
    for (const Value* value : node->inputs) {
      if (value && !defined.contains(value))
        fail(Code::kInternal, "[verify] {} uses '{}' before it is made{}", node->label(),
             value->name, when);
      if (value &&
          std::find(value->users.begin(), value->users.end(), node.get()) == value->users.end())
        fail(Code::kInternal, "[verify] '{}' does not list its user {}{}", value->name,
             node->label(), when);
      types.push_back(value ? &value->type : nullptr);
    }
    const std::vector<ValueType> found = InferContext::run(
        *node->op, node->attrs, types, node->outputs.size(), node->label() + when);
    for (size_t i = 0; i < found.size(); ++i) {
      const Value* value = node->outputs[i];
      if (value->producer != node.get() || value->index != static_cast<int>(i))
        fail(Code::kInternal, "[verify] '{}' does not know its producer {}{}", value->name,
             node->label(), when);
      if (!compatible(value->type, found[i]))
        fail(Code::kInternal, "[verify] [{}] '{}' says {}, inference says {} ({}){}",
             node->op->name, value->name, to_string(value->type), to_string(found[i]),
             node->label(), when);
      defined.insert(value);
    }
  }
  for (const Value* value : graph.outputs())
    if (!defined.contains(value))
      fail(Code::kInternal, "[verify] output '{}' is never made{}", value->name, when);
}

}  // namespace anymps
