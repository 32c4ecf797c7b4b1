// SPDX-License-Identifier: Apache-2.0
// Memory of the device mps: the engine's, which lies in the host's memory.
#pragma once

#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/DispatchKeySet.h>

namespace anymps::aten {

inline const c10::Device kDevice(c10::DeviceType::MPS, 0);
inline const c10::DispatchKeySet kKeys(c10::DispatchKey::MPS);

c10::DeviceAllocator& allocator();

// The limits of PYTORCH_MPS_HIGH_WATERMARK_RATIO and torch.mps.set_per_process_memory_fraction: a
// share of recommended_memory, 0 for none.
void set_memory_fraction(double fraction);
size_t recommended_memory();
size_t allocated_memory();  // in tensors
size_t reserved_memory();   // with what is kept for reuse
void empty_cache();

}  // namespace anymps::aten
