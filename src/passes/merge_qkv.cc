// SPDX-License-Identifier: Apache-2.0
// Matmuls of one tensor with several weights become one with the weights side by side:
//   matmul(x, wq, bq), matmul(x, wk, bk), matmul(x, wv, bv)
//     ->  split(matmul(x, [wq wk wv], [bq bk bv]))
// It pays where a row of x is short of work, and costs where the parts, which are now strided
// views, have to be copied. So it is off unless ANYMPS_PASSES says +merge_qkv.
#include <cstring>
#include <unordered_set>

#include "base/env.h"
#include "memory/refreshable.h"
#include "passes/match.h"
#include "passes/pass.h"

namespace anymps {

namespace {

bool mergeable(const Node& node) {
  if (!node.is("matmul") || node.input(3) || node.attrs.s("activation") != "none") return false;
  if (node.attrs.b("transpose_a") || node.attrs.b("transpose_b")) return false;
  const Value *w = node.input(1), *bias = node.input(2);
  if (!w->is_constant() || rank_of(w) != 2 || rank_of(node.input(0)) < 2) return false;
  return !bias || (bias->is_constant() && rank_of(bias) == 1 && bias->shape()[0] == w->shape()[1]);
}

// Matrices with the same number of rows, side by side.
ConstantPtr side_by_side(const std::vector<ConstantPtr>& parts, int64_t rows, int64_t columns,
                         bool vector) {
  const DType dtype = parts[0]->dtype();
  auto recipe = [rows, columns, size = size_of(dtype)](std::span<const ConstantPtr> from,
                                                       std::byte* out) {
    size_t at = 0;
    for (const ConstantPtr& part : from) {
      const auto bytes = part->data();
      const size_t width = part->bytes() / static_cast<size_t>(rows);
      for (size_t row = 0; row < static_cast<size_t>(rows); ++row)
        std::memcpy(out + row * static_cast<size_t>(columns) * size + at, bytes.get() + row * width,
                    width);
      at += width;
    }
  };
  return derived_constant(dtype, vector ? Shape{columns} : Shape{rows, columns}, parts, recipe);
}

bool merge(Graph& graph, const std::vector<Node*>& group) {
  std::vector<ConstantPtr> weights, biases;
  std::vector<int64_t> sizes;
  int64_t columns = 0;
  const int64_t rows = group[0]->input(1)->constant->shape()[0];
  if (rows == 0) return false;
  for (const Node* node : group) {
    weights.push_back(node->input(1)->constant);
    if (node->input(2)) biases.push_back(node->input(2)->constant);
    sizes.push_back(weights.back()->shape()[1]);
    columns += sizes.back();
  }
  if (!biases.empty() && biases.size() != group.size()) return false;
  Value* w = graph.constant(side_by_side(weights, rows, columns, false), "merged.w");
  Value* bias = biases.empty()
                    ? nullptr
                    : graph.constant(side_by_side(biases, 1, columns, true), "merged.bias");
  Value* y = graph.add("matmul", {group[0]->input(0), w, bias}, group[0]->attrs.named(),
                       group[0]->name + ".merged");
  Node* parts = graph.add_node(get_op("split"), {y}, {{"axis", -1}, {"sizes", sizes}},
                               group[0]->name + ".parts", group.size());
  for (size_t i = 0; i < group.size(); ++i)
    graph.replace_uses(group[i]->output(), parts->outputs[i]);
  return true;
}

}  // namespace

PASS(merge_qkv, 350, "matmuls of one tensor become one (off unless asked for)") {
  if (!context.fuses || !env_contains("ANYMPS_PASSES", "+merge_qkv")) return 0;
  int changes = 0;
  std::unordered_set<const Node*> merged;
  for (Node* node : graph.node_list()) {
    if (!mergeable(*node) || merged.contains(node)) continue;
    std::vector<Node*> group = {node};
    for (Node* other : node->input(0)->users)
      if (other != node && mergeable(*other) && other->input(0) == node->input(0) &&
          other->attrs == node->attrs && !node->input(2) == !other->input(2))
        group.push_back(other);
    if (group.size() < 2) continue;
    graph.insert_before(node);
    if (!merge(graph, group)) continue;
    merged.insert(group.begin(), group.end());
    ++changes;
  }
  if (changes) graph.erase_dead();
  return changes;
}

}  // namespace anymps
