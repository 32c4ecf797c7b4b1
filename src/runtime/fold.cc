// SPDX-License-Identifier: Apache-2.0
#include "runtime/fold.h"

#include <algorithm>
#include <span>

#include "drivers/reference_fallback.h"
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

std::vector<Shape> measure(const Node& node) {
  MeasureInputs inputs(node.inputs.size());
  for (size_t i = 0; i < node.inputs.size(); ++i)
    if (node.inputs[i]) inputs.set(i, *node.inputs[i]->constant);
  return inputs.measure(*node.op, node.attrs, node.outputs.size());
}

// The oracle computes. Where elements are only moved, the driver's kernel gives the same and is
// faster.
KernelPtr folding_kernel(Driver& driver, const KernelRequest& request) {
  if (request.op->is(kMoves) && driver.traits().host_visible && driver.traits().computes) {
    KernelPtr kernel = choose_kernel(driver, request).kernel;
    if (kernel->scratch_bytes() == 0) return kernel;
  }
  return make_oracle_kernel(request);
}

void compute(const Kernel& kernel, std::span<const ConstantPtr> inputs,
             std::vector<void*> outputs) {
  std::vector<Constant::Bytes> held;
  std::vector<void*> pointers;
  for (const ConstantPtr& input : inputs) {
    held.push_back(input ? input->data() : nullptr);
    pointers.push_back(const_cast<std::byte*>(held.back().get()));
  }
  kernel.run({pointers.data(), outputs.data(), nullptr, nullptr});
}

}  // namespace

std::vector<ConstantPtr> fold(Device& device, const Node& node) {
  if (node.op->is(kStructural) || has_strings(node)) return {};
  PreparedCall call(device, *node.op, node.attrs, node.name);
  std::vector<ConstantPtr> inputs;
  for (const Value* value : node.inputs) {
    inputs.push_back(value ? value->constant : nullptr);
    if (value)
      call.add_input(value->constant->desc(), numbers(value->type.content));
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
    const std::vector<Shape> shapes = measure(node);
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

}  // namespace anymps
