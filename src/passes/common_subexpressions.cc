// SPDX-License-Identifier: Apache-2.0
// Computes equal things once: nodes with the same op, attributes and inputs, and small constants
// with the same bytes.
#include <functional>
#include <span>
#include <type_traits>
#include <unordered_map>

#include "graph/copy_body.h"
#include "memory/refreshable.h"
#include "passes/match.h"
#include "passes/pass.h"

namespace anymps {

namespace {

constexpr size_t kSmallBytes = 4096;

int merge_constants(Graph& graph) {
  std::unordered_map<std::string, Value*> seen;
  int changes = 0;
  for (Value* value : graph.values()) {
    if (!value->is_constant() || value->users.empty()) continue;
    std::string key;
    if (value->constant->bytes() <= kSmallBytes && !is_refreshable(*value->constant)) {
      const auto bytes = value->constant->data();
      key = to_string(value->constant->desc()) + ":";
      key.append(reinterpret_cast<const char*>(bytes.get()), value->constant->bytes());
    } else {
      key = fmt::format("#{}", value->constant->id());
    }
    auto [place, fresh] = seen.try_emplace(std::move(key), value);
    if (fresh || !can_replace(graph, value, place->second)) continue;
    graph.replace_uses(value, place->second);
    ++changes;
  }
  return changes;
}

template <typename T>
void append(std::string& key, const T& number) {
  const auto bytes = std::as_bytes(std::span(&number, 1));
  key.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

// Equal for attributes that are the same to the bit. Graphs are compared by identity.
void append_attr(std::string& key, const AttrValue& value) {
  std::visit(
      [&]<typename T>(const T& held) {
        if constexpr (std::is_same_v<T, std::shared_ptr<Graph>>) {
          append(key, held.get());
        } else if constexpr (std::is_arithmetic_v<T>) {
          append(key, held);
        } else {
          append(key, held.size());
          key.append(reinterpret_cast<const char*>(held.data()), held.size() * sizeof(held[0]));
        }
      },
      value);
}

// All that two nodes must share to compute the same. An op has the same attributes in every node.
std::string key_of(const Node& node) {
  std::vector<const Value*> inputs(node.inputs.begin(), node.inputs.end());
  if (node.op->is(kCommutative) && inputs.size() >= 2 && std::less<>()(inputs[1], inputs[0]))
    std::swap(inputs[0], inputs[1]);
  std::string key;
  append(key, node.op);
  append(key, node.outputs.size());
  append(key, inputs.size());
  for (const Value* value : inputs) append(key, value);
  for (const AttrValue& value : node.attrs.values()) append_attr(key, value);
  return key;
}

}  // namespace

PASS(common_subexpressions, 120, "equal nodes and equal small constants become one") {
  int changes = merge_constants(graph);
  std::unordered_map<std::string, Node*> seen;
  for (Node* node : graph.node_list()) {
    if (has_effects(*node)) continue;
    const auto [place, fresh] = seen.try_emplace(key_of(*node), node);
    Node* twin = place->second;
    bool replaceable = !fresh;  // two outputs of the graph stay two
    for (size_t i = 0; replaceable && i < node->outputs.size(); ++i)
      replaceable = can_replace(graph, node->outputs[i], twin->outputs[i]);
    if (!replaceable) continue;
    for (size_t i = 0; i < node->outputs.size(); ++i)
      graph.replace_uses(node->outputs[i], twin->outputs[i]);
    ++changes;
  }
  if (changes) graph.erase_dead();
  return changes;
}

}  // namespace anymps
