// SPDX-License-Identifier: Apache-2.0
// ONNX demands that nodes are sorted; not every exporter does it, and a hostile file has cycles.
#include <algorithm>
#include <functional>
#include <queue>

#include "formats/onnx/read/importer.h"

namespace anymps::onnx {

namespace {

// All names that a node reads, those that the graphs in its attributes capture included.
void collect_inputs(const Node& node, std::vector<std::string_view>& names) {
  for (std::string_view name : node.inputs)
    if (!name.empty()) names.push_back(name);
  for (const Attribute& attribute : node.attributes)
    for (const Graph& graph : attribute.graphs) free_names(graph, names);
}

std::string describe_cycle(const std::vector<Node>& nodes, size_t start,
                           const std::vector<std::vector<size_t>>& producers,
                           const std::vector<size_t>& waiting) {
  // Every waiting node has a waiting producer: walking back must come round.
  std::vector<size_t> trail;
  std::vector<bool> seen(nodes.size());
  size_t at = start;
  while (!seen[at]) {
    seen[at] = true;
    trail.push_back(at);
    at = *std::find_if(producers[at].begin(), producers[at].end(),
                       [&](size_t p) { return waiting[p] > 0; });
  }
  trail.erase(trail.begin(), std::find(trail.begin(), trail.end(), at));
  std::reverse(trail.begin(), trail.end());
  std::string text = label(nodes[trail[0]], trail[0]) + ": is part of a cycle: ";
  const size_t shown = std::min<size_t>(trail.size(), 8);
  for (size_t i = 0; i < shown; ++i) text += fmt::format("\"{}\" -> ", nodes[trail[i]].outputs[0]);
  return text + (shown < trail.size() ? "…" : fmt::format("\"{}\"", nodes[trail[0]].outputs[0]));
}

}  // namespace

std::string label(const Node& node, size_t index) {
  return fmt::format("node {} \"{}\" ({})", index, node.name, node.op_type);
}

bool Scope::contains(std::string_view name) const {
  for (const Scope* scope = this; scope; scope = scope->parent)
    if (scope->values.contains(name) || scope->tensors.contains(name) ||
        scope->sparse.contains(name))
      return true;
  return false;
}

std::vector<size_t> running_order(const std::vector<Node>& nodes, const Scope& scope) {
  std::unordered_map<std::string_view, size_t> maker;
  for (size_t i = 0; i < nodes.size(); ++i)
    for (std::string_view name : nodes[i].outputs) {
      if (name.empty()) continue;
      const bool taken = scope.values.contains(name) || scope.tensors.contains(name) ||
                         scope.sparse.contains(name);
      require(!taken, "{}: output \"{}\" is also an input or an initializer", label(nodes[i], i),
              name);
      auto [it, fresh] = maker.emplace(name, i);
      require(fresh, "{}: output \"{}\" is also made by {}", label(nodes[i], i), name,
              label(nodes[it->second], it->second));
    }

  std::vector<std::vector<size_t>> producers(nodes.size()), users(nodes.size());
  std::vector<size_t> waiting(nodes.size());
  for (size_t i = 0; i < nodes.size(); ++i) {
    std::vector<std::string_view> names;
    collect_inputs(nodes[i], names);
    const size_t own = std::count_if(nodes[i].inputs.begin(), nodes[i].inputs.end(),
                                     [](std::string_view name) { return !name.empty(); });
    for (size_t k = 0; k < names.size(); ++k) {
      auto made = maker.find(names[k]);
      // What a branch reads may also be made inside the branch; it is checked when that runs.
      require(made != maker.end() || k >= own || scope.contains(names[k]),
              "{}: input \"{}\" is made by no node and is no input or initializer",
              label(nodes[i], i), names[k]);
      if (made == maker.end()) continue;
      producers[i].push_back(made->second);
      users[made->second].push_back(i);
      ++waiting[i];
    }
  }

  std::priority_queue<size_t, std::vector<size_t>, std::greater<>> ready;
  for (size_t i = 0; i < nodes.size(); ++i)
    if (waiting[i] == 0) ready.push(i);
  std::vector<size_t> order;
  while (!ready.empty()) {
    const size_t i = ready.top();
    ready.pop();
    order.push_back(i);
    for (size_t user : users[i])
      if (--waiting[user] == 0) ready.push(user);
  }
  if (order.size() < nodes.size()) {
    const size_t stuck =
        std::find_if(waiting.begin(), waiting.end(), [](size_t n) { return n > 0; }) -
        waiting.begin();
    fail(Code::kInvalidArgument, "{}", describe_cycle(nodes, stuck, producers, waiting));
  }
  return order;
}

}  // namespace anymps::onnx
