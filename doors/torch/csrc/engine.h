// SPDX-License-Identifier: Apache-2.0
// The engine behind the device mps, and its errors as PyTorch's.
#pragma once

#include "anymps/anymps.h"
#include "lowering/builder.h"

namespace anymps::aten {

const amps_api& engine();  // loaded at its first use
amps_device* device();

// Whether there is no kernel for such arguments, which the CPU's may have.
bool unsupported(const lowering::EngineError& error);
void check(amps_status status);
[[noreturn]] void raise(const lowering::EngineError& error);

}  // namespace anymps::aten
