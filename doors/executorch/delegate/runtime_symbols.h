// SPDX-License-Identifier: Apache-2.0
// The few functions of the ExecuTorch runtime that the delegate calls. They are looked up when the
// library is loaded, in whichever library of the process has them: libexecutorch.so for 1.5 and C++
// programs, an extension module for 1.4. So one binary serves both, and the order in which things
// are linked or loaded matters little.
#pragma once

#include <executorch/runtime/backend/interface.h>

#include <string>

namespace anymps::delegate {

// Registers in every registry of the process that does not have the backend yet: some wheels carry
// more than one. Returns what went wrong, "" if it is registered.
std::string register_everywhere(const executorch::runtime::Backend& backend);

executorch::runtime::Error resize(executorch::runtime::etensor::Tensor& tensor,
                                  executorch::runtime::ArrayRef<int32_t> sizes);

int64_t ticks();  // the runtime's clock, which event tracers use
void log_error(const char* message);

}  // namespace anymps::delegate
