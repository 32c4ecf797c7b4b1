// SPDX-License-Identifier: Apache-2.0
// Computes equal things once: nodes with the same op, attributes and inputs, and small constants
// with the same bytes.
#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "ops/subgraph.h"
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
    if (value->constant->bytes() <= kSmallBytes) {
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

std::string key_of(const Node& node) {
  std::vector<const Value*> inputs(node.inputs.begin(), node.inputs.end());
  if (node.op->is(kCommutative) && inputs.size() >= 2 && std::less<>()(inputs[1], inputs[0]))
    std::swap(inputs[0], inputs[1]);
  std::string key = fmt::format("{}/{}", node.op->name, node.outputs.size());
  for (const Value* value : inputs) key += fmt::format(" {}", static_cast<const void*>(value));
  return key;
}

}  // namespace

PASS(common_subexpressions, 120, "equal nodes and equal small constants become one") {
  int changes = merge_constants(graph);
  std::unordered_map<std::string, std::vector<Node*>> seen;
  for (Node* node : graph.node_list()) {
    if (has_effects(*node)) continue;
    auto& candidates = seen[key_of(*node)];
    auto twin = std::find_if(candidates.begin(), candidates.end(), [&](Node* other) {
      if (!(other->attrs == node->attrs)) return false;
      for (size_t i = 0; i < node->outputs.size(); ++i)
        if (!can_replace(graph, node->outputs[i], other->outputs[i])) return false;
      return true;
    });
    if (twin == candidates.end()) {
      candidates.push_back(node);
      continue;
    }
    for (size_t i = 0; i < node->outputs.size(); ++i)
      graph.replace_uses(node->outputs[i], (*twin)->outputs[i]);
    ++changes;
  }
  if (changes) graph.erase_dead();
  return changes;
}

}  // namespace anymps
