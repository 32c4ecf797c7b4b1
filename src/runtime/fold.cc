// SPDX-License-Identifier: Apache-2.0
#include "runtime/fold.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <new>
#include <span>

#include "base/denormals.h"
#include "drivers/reference_fallback.h"
#include "graph/known.h"
#include "memory/refreshable.h"
#include "ops/shape_rules.h"
#include "runtime/measure.h"
#include "runtime/preparation.h"

namespace anymps {

namespace {

constexpr size_t kLazyBytes = 64 << 10;  // results above this are made on demand

bool has_strings(const Node& node) {
  const auto is_string = [](const Value* value) {
    return value && value->dtype() == DType::kString;
  };
  return std::any_of(node.inputs.begin(), node.inputs.end(), is_string) ||
         std::any_of(node.outputs.begin(), node.outputs.end(), is_string);
}

constexpr int64_t kMostElements = 4096;  // of what is computed for the sake of a shape

std::vector<Shape> measure_constants(const Node& node, std::span<const ConstantPtr> constants) {
  MeasureInputs inputs(constants.size());
  for (size_t i = 0; i < constants.size(); ++i)
    if (constants[i]) inputs.set(i, *constants[i]);
  return inputs.measure(*node.op, node.attrs, node.outputs.size());
}

// The elements of a few integers, whatever their rank.
Content few_integers(const Constant& constant) {
  const bool few = constant.desc().count() <= ValueType::kMaxContent;
  return few && contains(kIndex, constant.dtype()) && !is_refreshable(constant)
             ? Content(ints_of(constant))
             : std::nullopt;
}

// The oracle computes. Where elements are moved, or next to it, the driver's kernel is as good and
// faster.
KernelPtr folding_kernel(Driver& driver, const KernelRequest& request) {
  const bool as_good = request.op->is(kMoves) || request.op->is(kRoundsLittle);
  if (as_good && driver.traits().host_visible && driver.traits().computes)
    return choose_kernel(driver, request).kernel;
  return make_oracle_kernel(request);
}

void compute(const Kernel& kernel, std::span<const ConstantPtr> inputs,
             std::vector<void*> outputs) {
  const DenormalScope keep(Denormals::kKeep);
  std::vector<Constant::Bytes> held;
  std::vector<void*> pointers;
  for (const ConstantPtr& input : inputs) {
    held.push_back(input ? input->data() : nullptr);
    pointers.push_back(const_cast<std::byte*>(held.back().get()));
  }
  constexpr size_t kAlignment = 64;
  const size_t lines = (kernel.scratch_bytes() + kAlignment - 1) / kAlignment;
  const std::unique_ptr<void, decltype(&std::free)> scratch(
      lines ? std::aligned_alloc(kAlignment, lines * kAlignment) : nullptr, &std::free);
  if (lines && !scratch) throw std::bad_alloc();
  kernel.run({pointers.data(), outputs.data(), scratch.get(), nullptr});
}

// `inputs`: the elements of each input, null where it is absent.
std::vector<ConstantPtr> fold_node(Device& device, const Node& node,
                                   const std::vector<ConstantPtr>& inputs) {
  if (node.op->is(kStructural) || has_strings(node)) return {};
  PreparedCall call(device, *node.op, node.attrs, node.name);
  for (const ConstantPtr& input : inputs) {
    if (input)
      call.add_input(input->desc(), few_integers(*input));
    else
      call.add_absent();
  }
  // What may change is made again from its inputs alone, with the shape it has.
  const bool refreshable = std::any_of(inputs.begin(), inputs.end(), [](const ConstantPtr& input) {
    return input && is_refreshable(*input);
  });
  if (refreshable && (node.op->measure || node.outputs.size() != 1)) return {};
  PreparedCall::Open open = call.infer(node.outputs.size(), node.label());
  if (open == PreparedCall::kMeasure) {
    const std::vector<Shape> shapes = measure_constants(node, inputs);
    open = call.infer(node.outputs.size(), node.label(), &shapes);
  }
  if (open != PreparedCall::kNothing) return {};
  const KernelPtr kernel = folding_kernel(device.driver(), call.request);
  if (!kernel) return {};
  const std::vector<TensorDesc>& descs = call.request.outputs;
  if (descs.size() == 1 && (refreshable || descs[0].bytes() > kLazyBytes))
    return {derived_constant(descs[0].dtype, descs[0].shape, inputs,
                             [kernel](std::span<const ConstantPtr> from, std::byte* out) {
                               compute(*kernel, from, {out});
                             })};
  std::vector<std::vector<std::byte>> memory;
  std::vector<void*> outputs;
  for (const TensorDesc& desc : descs) {
    memory.emplace_back(desc.bytes());
    memory.back().reserve(1);
    outputs.push_back(memory.back().data());
  }
  compute(*kernel, inputs, outputs);
  std::vector<ConstantPtr> results;
  for (size_t i = 0; i < memory.size(); ++i)
    results.push_back(Constant::copy(descs[i].dtype, descs[i].shape, memory[i]));
  return results;
}

}  // namespace

std::vector<ConstantPtr> fold(Device& device, const Node& node) {
  std::vector<ConstantPtr> inputs;
  for (const Value* value : node.inputs) inputs.push_back(value ? value->constant : nullptr);
  return fold_node(device, node, inputs);
}

const ValueType& ShapeArithmetic::type_of(const Value* value) const {
  return value->is_constant() ? value->type : types_.at(value);
}

// What needs no computing, or was computed.
ConstantPtr ShapeArithmetic::known(const Value* value) {
  if (value->is_constant()) return is_refreshable(*value->constant) ? nullptr : value->constant;
  if (const auto found = made_.find(value); found != made_.end()) return found->second;
  return knows_elements(type_of(value)) ? constant_of_elements(type_of(value)) : nullptr;
}

bool ShapeArithmetic::may_compute(const Node& node) const {
  if (node.op->is(kImpure) || node.op->is(kStructural)) return false;
  const auto is_small = [&](const Value* value) {
    if (!value) return true;
    const ValueType& type = type_of(value);
    return type.container == Container::kTensor && type.static_shape() &&
           element_count(to_shape(type.shape)) <= kMostElements;
  };
  return std::ranges::all_of(node.inputs, is_small) && std::ranges::all_of(node.outputs, is_small);
}

void ShapeArithmetic::compute(const Node& node) {
  std::vector<ConstantPtr> inputs;
  for (const Value* value : node.inputs) {
    inputs.push_back(value ? known(value) : nullptr);
    if (value && !inputs.back()) return;
  }
  const std::vector<ConstantPtr> results = fold_node(device_, node, inputs);
  for (size_t i = 0; i < results.size(); ++i) made_[node.outputs[i]] = results[i];
}

// Computes a value and what it comes from. The chain may be long, so it is walked without
// recursion.
ConstantPtr ShapeArithmetic::constant_of(const Value* value) {
  std::vector<const Node*> open;
  const auto want = [&](const Value* wanted) {
    if (!wanted || known(wanted) || !wanted->producer) return false;
    if (!visited_.insert(wanted->producer).second || !may_compute(*wanted->producer)) return false;
    open.push_back(wanted->producer);
    return true;
  };
  want(value);
  while (!open.empty()) {
    const Node& node = *open.back();
    bool waits = false;
    for (const Value* input : node.inputs) waits = want(input) || waits;
    if (waits) continue;
    compute(node);
    open.pop_back();
  }
  return known(value);
}

// Inference again, with the elements of all lists that are known by now.
bool ShapeArithmetic::infer(const Node& node, const std::vector<ConstantPtr>& inputs) {
  std::vector<ValueType> types(inputs.size());
  std::vector<const ValueType*> pointers(inputs.size(), nullptr);
  Attrs attrs = node.attrs;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Value* value = node.inputs[i];
    if (!value) continue;
    types[i] = type_of(value);
    pointers[i] = &types[i];
    if (!inputs[i]) continue;
    if (const Content few = few_integers(*inputs[i])) {
      types[i].content = Dims(few->begin(), few->end());
      if (!value->is_constant()) types_[value].content = types[i].content;
    } else if (const auto attribute = as_attribute(*node.op, i, *inputs[i])) {
      attrs.set(NamedAttr(node.op->inputs[i].name, *attribute));
      pointers[i] = nullptr;
    }
  }
  std::vector<ValueType> results =
      InferContext::run(*node.op, attrs, pointers, node.outputs.size(), node.label());
  const bool settled = std::ranges::all_of(results, &ValueType::static_shape);
  for (size_t i = 0; i < results.size(); ++i) types_[node.outputs[i]] = std::move(results[i]);
  return settled;
}

bool ShapeArithmetic::measure(const Node& node, const std::vector<ConstantPtr>& inputs) {
  if (!node.op->measure) return false;
  for (size_t i = 0; i < inputs.size(); ++i)
    if (node.inputs[i] && !inputs[i]) return false;
  const std::vector<Shape> shapes = measure_constants(node, inputs);
  for (size_t i = 0; i < shapes.size(); ++i) {
    ValueType& type = types_[node.outputs[i]];
    type.ranked = true;
    type.shape = to_dims(shapes[i]);
  }
  return true;
}

void ShapeArithmetic::settle(const Node& node) {
  if (open_) return;
  open_ = true;
  if (node.op->is(kImpure) || node.op->is(kStructural)) return;
  try {
    std::vector<ConstantPtr> inputs;
    for (const Value* value : node.inputs) inputs.push_back(value ? constant_of(value) : nullptr);
    open_ = !infer(node, inputs) && !measure(node, inputs);
  } catch (const Error&) {
    // The run says what is wrong.
  }
}

}  // namespace anymps
