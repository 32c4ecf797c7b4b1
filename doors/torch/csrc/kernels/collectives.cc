// SPDX-License-Identifier: Apache-2.0
#include "kernels/collectives.h"

#include <ATen/core/List.h>
#include <ATen/core/ivalue.h>
#include "kernels/cpu_aliases.h"
#include "strict.h"

namespace anymps::aten {

namespace {

using c10::IValue;

// The value with each of its tensors changed; lists of lists of tensors are among them.
template <class Change>
IValue changed(const IValue& value, const Change& change) {
  if (value.isTensor()) return change(value.toTensor());
  if (!value.isList()) return value;
  c10::impl::GenericList list(value.toList().elementType());
  for (const IValue& item : value.toListRef()) list.push_back(changed(item, change));
  return list;
}

}  // namespace

bool is_collective(const c10::OperatorHandle& op) {
  return !strict() && op.schema().name().starts_with("c10d::");
}

void run_collective(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  CpuAliases aliases(false);
  const auto to_cpu = [&](const at::Tensor& tensor) {
    return aliases.to_cpu(tensor, Use::kReadAndWritten);
  };
  const auto to_device = [&](const at::Tensor& tensor) { return aliases.to_device(tensor); };
  const size_t first = stack->size() - op.schema().arguments().size();
  for (size_t i = first; i < stack->size(); ++i) (*stack)[i] = changed((*stack)[i], to_cpu);
  op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), stack);
  for (size_t i = stack->size() - op.schema().returns().size(); i < stack->size(); ++i)
    (*stack)[i] = changed((*stack)[i], to_device);
}

}  // namespace anymps::aten
