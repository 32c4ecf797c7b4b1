// SPDX-License-Identifier: Apache-2.0
// Arithmetic in half types that the driver is slow at is done in f32, and what lies between two
// nodes stays f32:
//   relu(matmul(x, w))  ->  cast(relu(matmul(cast(x), cast(w)))),  with w folded to an f32 constant
// Results are those of the half types or nearer to the exact ones: only roundings between nodes
// are left out. Where somebody can see a rounding it stays: in results of the graph, in casts of
// the graph itself, and in front of ops that are told apart by it (a neighbour, a test for
// infinity).
#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "passes/match.h"
#include "passes/pass.h"

namespace anymps {

namespace {

class Widening {
 public:
  Widening(Graph& graph, DTypeSet slow) : graph_(graph), rewriter_(graph), slow_(slow) {}

  // The half types of constants that became f32.
  DTypeSet rounded() const { return rounded_; }

  int run() {
    for (const auto& node : graph_.nodes())
      if (widens(*node)) widened_.insert(node.get());
    if (widened_.empty()) return 0;
    for (const auto& node : graph_.nodes())
      if (!widened_.contains(node.get()) && !node->op->is(kShapeOnly))
        seen_rounded_.insert(node->inputs.begin(), node->inputs.end());
    return rewriter_.each([this](Node& node) { return widened_.contains(&node) && widen(node); });
  }

 private:
  bool is_slow(const Value* value) const {
    return value && value->type.container == Container::kTensor && contains(slow_, value->dtype());
  }

  bool widens(const Node& node) const {
    const Op& op = *node.op;
    if (op.is(kStructural) || op.is(kInternal) || op.is(kImpure) || op.is(kShapeOnly) ||
        op.is(kTypeBound))
      return false;
    // Every result of a half type follows from the inputs' type, not from an attribute or the op.
    const auto follows = [&](const Value* value) {
      if (!is_slow(value)) return true;
      const size_t i = std::min<size_t>(value->index, op.outputs.size() - 1);
      return std::any_of(op.inputs.begin(), op.inputs.end(),
                         [&](const InputSpec& input) { return input.type == op.outputs[i].type; });
    };
    if (!std::all_of(node.outputs.begin(), node.outputs.end(), follows)) return false;
    const bool makes = std::any_of(node.outputs.begin(), node.outputs.end(),
                                   [&](const Value* value) { return is_slow(value); });
    if (!op.is(kMoves)) return makes;
    // What only moves elements is as good in a half type, and smaller.
    return makes && std::any_of(node.inputs.begin(), node.inputs.end(), [&](const Value* value) {
             return value && value->producer && widened_.contains(value->producer);
           });
  }

  bool widen(Node& node) {
    std::vector<Value*> inputs;
    for (Value* input : node.inputs) inputs.push_back(is_slow(input) ? wide(input) : input);
    const std::vector<Value*> outputs = node.outputs;
    const Node* made = nullptr;
    try {
      made = graph_.add_node(*node.op, std::move(inputs), node.attrs.named(), node.name,
                             outputs.size());
    } catch (const Error&) {
      return false;  // this op wants the half type
    }
    for (size_t i = 0; i < outputs.size(); ++i) {
      Value* result = made->outputs[i];
      if (is_slow(outputs[i])) {
        Value* rounded = graph_.add("cast", {result}, {{"dtype", outputs[i]->dtype()}});
        wide_.erase(rounded);  // an erased value may have lain there
        if (!seen_rounded_.contains(outputs[i])) wide_[rounded] = result;
        result = rounded;
      }
      if (outputs[i]->users.empty() && !graph_.is_output(outputs[i])) continue;
      const bool last = std::all_of(
          outputs.begin() + static_cast<std::ptrdiff_t>(i) + 1, outputs.end(),
          [&](const Value* value) { return value->users.empty() && !graph_.is_output(value); });
      rewriter_.replace(outputs[i], result);
      if (last) break;  // the last use is gone, and with it the node
    }
    return true;
  }

  Value* wide(Value* value) {
    if (const auto found = wide_.find(value); found != wide_.end()) return found->second;
    if (value->is_constant()) rounded_ |= bit(value->dtype());
    return wide_[value] = graph_.add("cast", {value}, {{"dtype", DType::kF32}});
  }

  Graph& graph_;
  Rewriter rewriter_;
  const DTypeSet slow_;
  DTypeSet rounded_ = 0;
  std::unordered_set<const Node*> widened_;
  std::unordered_set<const Value*> seen_rounded_;  // by nodes that are left as they are
  std::unordered_map<const Value*, Value*> wide_;  // the same value in f32
};

}  // namespace

PASS(widen_halves, 140, "half types that the driver is slow at are computed in f32") {
  if (!context.widened) return 0;
  Widening widening(graph, context.widened);
  const int changes = widening.run();
  context.rounded |= widening.rounded();
  return changes;
}

}  // namespace anymps
