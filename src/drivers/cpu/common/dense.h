// SPDX-License-Identifier: Apache-2.0
// For kernels that walk plain memory: every tensor must be contiguous.
#pragma once

#include <cstring>
#include <string>

#include "drivers/kernel.h"

namespace anymps::cpu {

inline bool dense_outputs(const KernelRequest& request, std::string& why) {
  for (const TensorDesc& output : request.outputs)
    if (!output.contiguous()) return refuse<bool>(why, "an output is not contiguous");
  return true;
}

inline bool dense(const KernelRequest& request, std::string& why) {
  for (const auto& input : request.inputs)
    if (input && !input->contiguous()) return refuse<bool>(why, "an input is not contiguous");
  return dense_outputs(request, why);
}

// An empty tensor may have no memory.
inline void clear(void* memory, size_t bytes) {
  if (bytes) std::memset(memory, 0, bytes);
}

}  // namespace anymps::cpu
