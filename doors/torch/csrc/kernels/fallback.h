// SPDX-License-Identifier: Apache-2.0
// Ops that the device has no kernel for: refused, or computed by the CPU's where
// PYTORCH_ENABLE_MPS_FALLBACK=1 asks for that.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

namespace anymps::aten {

bool fallback_enabled();
void fall_back(const c10::OperatorHandle& op, torch::jit::Stack* stack);

}  // namespace anymps::aten
