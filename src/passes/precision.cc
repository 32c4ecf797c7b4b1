// SPDX-License-Identifier: Apache-2.0
#include "passes/precision.h"

#include <cmath>
#include <cstring>
#include <unordered_map>

namespace anymps {

namespace {

class Lowering {
 public:
  Lowering(const Graph& graph, DType half) : graph_(graph), half_(half) {}

  std::unique_ptr<Graph> run() {
    made_->name = graph_.name;
    for (const Value* input : graph_.inputs())
      full_[input] = made_->input(input->name, input->type);
    for (const auto& node : graph_.nodes()) {
      if (!lowers(*node) || !add(*node, true)) add(*node, false);
    }
    std::vector<Value*> outputs;
    for (const Value* output : graph_.outputs()) {
      Value* value = full(output);
      if (Value* other = made_->find_value(output->name); other && other != value)
        made_->rename(other, output->name + "_half");
      made_->rename(value, output->name);
      outputs.push_back(value);
    }
    made_->set_outputs(std::move(outputs));
    made_->erase_dead();
    return std::move(made_);
  }

 private:
  static bool is_float(const Value* value) {
    return value && value->dtype() == DType::kF32 && value->type.container == Container::kTensor;
  }

  bool lowers(const Node& node) const {
    if (node.op->is(kStructural) || node.op->is(kInternal)) return false;
    const bool product = node.op->is(kProduct);
    const bool follows = node.op->is(kMoves) || node.op->is(kStaysHalf) ||
                         (node.op->is(kElementwise) && !node.op->is(kSteep) && !casts(*node.op));
    if (!product && !follows) return false;
    bool any = product;
    for (const Value* input : node.inputs) {
      if (!is_float(input)) continue;
      if (input->is_constant()) {
        if (!fits(*input->constant)) return false;
        continue;
      }
      any = any || half_form_.contains(input);
      if (follows && !half_form_.contains(input)) return false;
    }
    return any;
  }

  // Its results have the dtype that an attribute says, whatever comes in.
  static bool casts(const Op& op) { return op.outputs[0].type.empty(); }

  // f16 ends at 65504: masks of -1e9 and the like would become infinite.
  bool fits(const Constant& constant) const {
    if (half_ != DType::kF16) return true;
    if (const auto known = fits_.find(&constant); known != fits_.end()) return known->second;
    return fits_[&constant] = all_fit(constant);
  }
  static bool all_fit(const Constant& constant) {
    const auto bytes = constant.data();
    const int64_t count = constant.desc().count();
    for (int64_t i = 0; i < count; ++i) {
      float element;
      std::memcpy(&element, bytes.get() + i * 4, 4);
      if (std::isfinite(element) && std::fabs(element) > 65504) return false;
    }
    return true;
  }

  // An op that reads the shape alone needs no cast.
  bool takes_half(const Node& node, const Value* input, bool lower) const {
    return lower || (node.op->is(kShapeOnly) && half_form_.contains(input));
  }

  bool add(const Node& node, bool lower) {
    std::vector<Value*> inputs;
    for (const Value* input : node.inputs)
      inputs.push_back(!input                                              ? nullptr
                       : is_float(input) && takes_half(node, input, lower) ? half(input)
                                                                           : full(input));
    NamedAttrs attrs = node.attrs.named();
    Node* made = nullptr;
    try {
      made = made_->add_node(*node.op, std::move(inputs), attrs, node.name, node.outputs.size());
    } catch (const Error&) {
      if (lower) return false;  // this op wants f32 somewhere
      throw;
    }
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      const bool lowered = is_float(node.outputs[i]) && made->outputs[i]->dtype() == half_;
      (lowered ? half_form_ : full_)[node.outputs[i]] = made->outputs[i];
    }
    return true;
  }

  Value* full(const Value* value) {
    if (const auto found = full_.find(value); found != full_.end()) return found->second;
    if (value->is_constant()) return full_[value] = made_->constant(value->constant, value->name);
    return full_[value] = cast(half_form_.at(value), DType::kF32);
  }
  Value* half(const Value* value) {
    if (const auto found = half_form_.find(value); found != half_form_.end()) return found->second;
    return half_form_[value] = cast(full(value), half_);
  }
  Value* cast(Value* value, DType to) { return made_->add("cast", {value}, {{"dtype", to}}); }

  const Graph& graph_;
  const DType half_;
  std::unique_ptr<Graph> made_ = std::make_unique<Graph>();
  std::unordered_map<const Value*, Value*> full_, half_form_;
  mutable std::unordered_map<const Constant*, bool> fits_;  // a constant may have many users
};

}  // namespace

std::unique_ptr<Graph> with_precision(const Graph& graph, DType half) {
  require(half == DType::kF16 || half == DType::kBF16, "[precision] {} is neither f16 nor bf16",
          name(half));
  return Lowering(graph, half).run();
}

}  // namespace anymps
