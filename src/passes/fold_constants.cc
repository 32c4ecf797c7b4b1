// SPDX-License-Identifier: Apache-2.0
// Computes what depends on constants alone, and integers that inference already knows (shape
// arithmetic). Results that are much larger than what they are made from stay nodes: a broadcast
// costs nothing at run time, and megabytes when it is stored. What is stored in all is bounded too,
// by what the graph came with: a file of a kilobyte that counts to a billion, or doubles a tensor
// thirty times, must not take gigabytes before it is even run.
#include <algorithm>
#include <unordered_set>

#include "passes/match.h"
#include "passes/pass.h"

namespace anymps {

namespace {

constexpr size_t kShapeBytes = 4 << 10;   // of shape arithmetic: always stored
constexpr size_t kAlwaysBytes = 1 << 20;  // stored, however little they are made from
constexpr size_t kRoomBytes = 64 << 20;   // what all results may take, and besides it …
constexpr size_t kTimesOwnBytes = 8;      // … as often what the graph had: int4 becomes f32

// Of the constants of a graph. What variables start with does not count: it may be zeros that no
// file holds.
size_t own_bytes(const Graph& graph) {
  std::unordered_set<const Constant*> seen;
  size_t bytes = 0;
  for (const Value* value : graph.values()) {
    if (!value->is_constant() || !seen.insert(value->constant.get()).second) continue;
    const auto& users = value->users;
    const bool initial = !users.empty() && std::all_of(users.begin(), users.end(), [](Node* user) {
      return user->is("read_variable");
    });
    if (!initial) bytes += value->constant->bytes();
  }
  return bytes;
}

// What goes away with a node whose results are stored: inputs that nothing else needs.
size_t freed_bytes(const Node& node) {
  size_t bytes = 0;
  for (const Value* value : node.inputs)
    if (value && value->is_constant() && value->users.size() == 1)
      bytes += value->constant->bytes();
  return bytes;
}

size_t bytes_of_all(const std::vector<ConstantPtr>& constants) {
  size_t bytes = 0;
  for (const ConstantPtr& constant : constants) bytes += constant->bytes();
  return bytes;
}

// Recurrent layers pack their weights, but only constants. Quantized ones become that here, even
// though they grow: what is stored is a recipe, and what is kept in the end is the packed form.
bool feeds_recurrent(const Value* value, int steps = 4) {
  return std::any_of(value->users.begin(), value->users.end(), [&](const Node* user) {
    if (user->is("lstm") || user->is("gru") || user->is("rnn")) return true;
    return user->op->view && steps > 0 && feeds_recurrent(user->output(), steps - 1);
  });
}

// `room`: bytes that may be stored.
bool worth_storing(const Node& node, size_t room) {
  size_t in = 0, out = 0;
  for (const Value* value : node.inputs) in += value ? value->constant->bytes() : 0;
  for (const Value* value : node.outputs) {
    // A shape that is known now is worth more than memory: it may be what keeps the graph from a
    // plan.
    if (!value->type.static_shape()) return node.op->measure != nullptr;
    out += byte_count(value->dtype(), to_shape(value->shape()));
  }
  if (out <= kShapeBytes) return true;
  return out <= room && (out <= kAlwaysBytes || out <= 2 * in || node.op->measure ||
                         (node.is("dequantize") && feeds_recurrent(node.output())));
}

std::vector<ConstantPtr> results_of(const Node& node, const PassContext& context, size_t room) {
  std::vector<ConstantPtr> results;
  for (const Value* value : node.outputs)
    if (knows_elements(value->type)) results.push_back(constant_of_elements(value->type));
  if (results.size() == node.outputs.size()) return results;
  const bool constant = std::all_of(node.inputs.begin(), node.inputs.end(), [](const Value* value) {
    return !value || value->is_constant();
  });
  if (!constant || !context.evaluate || !worth_storing(node, room)) return {};
  try {
    results = context.evaluate(node);  // recipes, where they are large
    return bytes_of_all(results) <= std::max(room, kShapeBytes) ? results
                                                                : std::vector<ConstantPtr>();
  } catch (const Error&) {
    return {};  // whoever runs the node gets the message
  }
}

}  // namespace

PASS(fold_constants, 200, "nodes of constants become constants") {
  Rewriter rewriter(graph);
  bool measured = false;
  size_t held = own_bytes(graph);
  if (!context.constant_bytes) context.constant_bytes = kRoomBytes + kTimesOwnBytes * held;
  const int changes = rewriter.each([&](Node& node) {
    if (node.op->is(kImpure)) return false;
    const size_t left = held - std::min(held, freed_bytes(node));
    const size_t room = *context.constant_bytes - std::min(*context.constant_bytes, left);
    const std::vector<ConstantPtr> results = results_of(node, context, room);
    if (results.size() != node.outputs.size()) return false;
    held = left + bytes_of_all(results);
    measured = measured || node.op->measure;
    std::vector<Value*> outputs = node.outputs;
    for (size_t i = 0; i < outputs.size(); ++i) {
      // Replacing the last use erases the node and with it the values.
      if (outputs[i]->users.empty() && !graph.is_output(outputs[i])) continue;
      const bool last = std::all_of(
          outputs.begin() + static_cast<std::ptrdiff_t>(i) + 1, outputs.end(),
          [&](const Value* value) { return value->users.empty() && !graph.is_output(value); });
      rewriter.replace(outputs[i], graph.constant(results[i], outputs[i]->name));
      if (last) break;
    }
    return true;
  });
  if (measured) graph.infer_again();  // shapes that were open are known
  return changes;
}

}  // namespace anymps
