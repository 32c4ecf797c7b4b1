// SPDX-License-Identifier: Apache-2.0
#include "kernels/fallback.h"

#include <cstdlib>
#include <string_view>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/List.h>
#include <torch/library.h>
#include "device/events.h"
#include "device/generator.h"
#include "kernels/collectives.h"
#include "kernels/cpu_aliases.h"
#include "kernels/fallback_report.h"

namespace anymps::aten {

namespace {

using at::Tensor;
using torch::jit::Stack;

// A generator of the CPU that draws from this part of the device's stream.
at::Generator cpu_generator(const at::Generator& given) {
  const auto state = generator_or_default(given).draw();
  constexpr uint64_t kOdd = 0x9e3779b97f4a7c15u;
  uint64_t seed = 0;
  for (const int32_t word : state) seed = (seed ^ static_cast<uint32_t>(word)) * kOdd;
  return at::detail::createCPUGenerator(seed);
}

// Running statistics are written, though their schemas do not say so.
Use use_of(const c10::Argument& argument) {
  if (argument.is_out()) return Use::kWritten;
  const bool written = argument.alias_info() ? argument.alias_info()->isWrite()
                                             : argument.name().starts_with("running_");
  return written ? Use::kReadAndWritten : Use::kRead;
}

c10::IValue on_cpu(const c10::IValue& value, Use use, CpuAliases& aliases) {
  if (value.isTensor()) return aliases.to_cpu(value.toTensor(), use);
  if (value.isDevice() && value.toDevice().is_mps()) return c10::Device(at::kCPU);
  if (value.isGenerator() && value.toGenerator().device().is_mps())
    return cpu_generator(value.toGenerator());
  if (value.isTensorList()) {
    c10::List<Tensor> list;
    for (const Tensor& tensor : value.toTensorVector()) list.push_back(aliases.to_cpu(tensor, use));
    return list;
  }
  if (value.isOptionalTensorList()) {
    c10::List<std::optional<Tensor>> list;
    for (const std::optional<Tensor>& tensor : value.toOptionalTensorVector())
      list.push_back(tensor ? std::optional(aliases.to_cpu(*tensor, use)) : std::nullopt);
    return list;
  }
  return value;
}

c10::IValue on_device(const c10::IValue& value, CpuAliases& aliases) {
  if (value.isTensor()) return aliases.to_device(value.toTensor());
  if (!value.isTensorList()) return value;
  c10::List<Tensor> list;
  for (const Tensor& tensor : value.toTensorVector()) list.push_back(aliases.to_device(tensor));
  return list;
}

[[noreturn]] void refuse(const c10::OperatorHandle& op, Stack*) {
  TORCH_CHECK_NOT_IMPLEMENTED(false, "The operator '", op.schema().operator_name(),
                              "' is not currently implemented for the MPS device. As a temporary "
                              "fix, you can set the environment variable "
                              "`PYTORCH_ENABLE_MPS_FALLBACK=1` to use the CPU as a fallback for "
                              "this op. WARNING: this will be slower than running "
                              "natively on MPS.");
}

void fall_back_or_refuse(const c10::OperatorHandle& op, Stack* stack) {
  if (is_collective(op)) return run_collective(op, stack);
  if (!fallback_enabled()) refuse(op, stack);
  TORCH_WARN_ONCE("The operator '", op.schema().operator_name(),
                  "' is not currently supported on the MPS backend and will fall back to run on "
                  "the CPU. This may have "
                  "performance implications.");
  fall_back(op, stack);
}

}  // namespace

bool fallback_enabled() {
  static const bool enabled = [] {
    const char* text = std::getenv("PYTORCH_ENABLE_MPS_FALLBACK");
    return text && std::string_view(text) == "1";
  }();
  return enabled;
}

size_t run_on_cpu(const c10::OperatorHandle& op, Stack* stack) {
  CpuAliases aliases;
  bool device_asked_for = false;
  const size_t count = op.schema().arguments().size(), first = stack->size() - count;
  for (size_t i = first; i < stack->size(); ++i) {
    c10::IValue& value = (*stack)[i];
    device_asked_for = device_asked_for || (value.isDevice() && value.toDevice().is_mps());
    value = on_cpu(value, use_of(op.schema().arguments()[i - first]), aliases);
  }
  op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), stack);
  aliases.write_back();
  if (!aliases.empty() || device_asked_for)
    for (size_t i = stack->size() - op.schema().returns().size(); i < stack->size(); ++i)
      (*stack)[i] = on_device((*stack)[i], aliases);
  return aliases.bytes();
}

void fall_back(const c10::OperatorHandle& op, Stack* stack) {
  const Moment start = now();
  const size_t bytes = run_on_cpu(op, stack);
  report_fallback(op.schema().operator_name(), bytes, milliseconds(start, now()));
}

TORCH_LIBRARY_IMPL(_, MPS, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&fall_back_or_refuse>());
}

}  // namespace anymps::aten
