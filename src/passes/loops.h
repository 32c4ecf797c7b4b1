// SPDX-License-Identifier: Apache-2.0
// What passes over loops ask: where a loop has the values that it carries and those that it
// captures.
#pragma once

#include <algorithm>
#include <string_view>

#include "graph/graph.h"

namespace anymps {

// Where carried values are in a loop: in its inputs, in its body's inputs and outputs. Captures
// come after all other inputs, in the node and in the body.
struct Carried {
  const char* attr;  // how many there are
  size_t node_input, body_input, body_output;

  size_t count(const Node& node) const { return node.attrs.i(attr); }
};

// Null: not a loop.
inline const Carried* carried_of(const Node& node) {
  static const std::pair<std::string_view, Carried> loops[] = {
      {"for_loop", {"carried", 3, 1, 0}},
      {"loop", {"carried", 2, 2, 1}},
      {"scan", {"states", 0, 0, 0}},
      {"while_loop", {"carried", 0, 0, 1}},
  };
  for (const auto& [op, carried] : loops)
    if (node.is(op)) return &carried;
  return nullptr;
}

// A value as it was before identities.
inline const Value* origin(const Value* value) {
  while (value->producer && value->producer->is("identity")) value = value->producer->input(0);
  return value;
}

constexpr size_t kNoInput = SIZE_MAX;

// Which input of the graph a value is.
inline size_t input_number(const Graph& graph, const Value* value) {
  const auto& inputs = graph.inputs();
  auto it = std::find(inputs.begin(), inputs.end(), origin(value));
  return it == inputs.end() ? kNoInput : static_cast<size_t>(it - inputs.begin());
}

}  // namespace anymps
