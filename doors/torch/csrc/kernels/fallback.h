// SPDX-License-Identifier: Apache-2.0
// Ops that the device has no kernel for: refused, or computed by the CPU's where
// PYTORCH_ENABLE_MPS_FALLBACK=1 asks for that.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

namespace anymps::aten {

bool fallback_enabled();
// Computes with the CPU's kernel on the tensors' own memory, as far as transfers allow; tells how
// many bytes of tensors it was given.
size_t run_on_cpu(const c10::OperatorHandle& op, torch::jit::Stack* stack);
// The same, and reports it.
void fall_back(const c10::OperatorHandle& op, torch::jit::Stack* stack);

}  // namespace anymps::aten
