// SPDX-License-Identifier: Apache-2.0
// Collectives of torch.distributed: gloo moves tensors of the CPU, and memory here is the host's.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

namespace anymps::aten {

bool is_collective(const c10::OperatorHandle& op);

// By the process group's backend for the CPU, in the tensors' own memory, also where it goes on
// after this returns.
void run_collective(const c10::OperatorHandle& op, torch::jit::Stack* stack);

}  // namespace anymps::aten
