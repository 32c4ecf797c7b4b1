// SPDX-License-Identifier: Apache-2.0
// The verifier: what must hold between any two passes. It recomputes every node's types and
// compares them with what the graph says, so that a pass that lies is caught where it lied.
#include <cstdint>
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

bool lists_use(const Value& value, const Node& node, size_t slot) {
  const size_t place = slot < node.use_places.size() ? node.use_places[slot] : SIZE_MAX;
  return place < value.users.size() && value.users[place] == &node &&
         value.user_slots[place] == slot;
}

// Labels are made for errors only: a graph is verified whenever it is compiled.
std::vector<ValueType> infer(const Node& node, std::vector<const ValueType*> types,
                             const std::string& when) {
  try {
    return InferContext::run(*node.op, node.attrs, std::move(types), node.outputs.size(), "");
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("{} ({}{})", error.what(), node.label(), when));
  }
}

}  // namespace

void verify(const Graph& graph, const std::string& after) {
  const std::string when = after.empty() ? "" : fmt::format(" after pass '{}'", after);
  const std::vector<Value*> values = graph.values();
  std::unordered_set<const Value*> defined;
  std::unordered_set<std::string_view> names;
  defined.reserve(values.size());
  names.reserve(values.size());
  for (const Value* value : values) {
    if (!names.insert(value->name).second)
      fail(Code::kInternal, "[verify] two values are called '{}'{}", value->name, when);
    if (!value->producer) defined.insert(value);
  }
  for (const auto& node : graph.nodes()) {
    std::vector<const ValueType*> types;
    for (size_t i = 0; i < node->inputs.size(); ++i) {
      const Value* value = node->inputs[i];
      if (value && !defined.contains(value))
        fail(Code::kInternal, "[verify] {} uses '{}' before it is made{}", node->label(),
             value->name, when);
      if (value && !lists_use(*value, *node, i))
        fail(Code::kInternal, "[verify] '{}' does not list its user {}{}", value->name,
             node->label(), when);
      types.push_back(value ? &value->type : nullptr);
    }
    const std::vector<ValueType> found = infer(*node, std::move(types), when);
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
