// SPDX-License-Identifier: Apache-2.0
// The engine as a framework's plug-in loads it: into a scope of its own, by its function table.
#pragma once

#include "lowering/builder.h"

namespace anymps::lowering {

// ANYMPS_LIBRARY, or libanymps.so beside the library that `near` is part of. Fails if there is
// none, or an older one than this code was compiled with.
const amps_api& load_engine(const void* near);

inline constexpr int kMaxDevices = 64;  // the engine's
// ANYMPS_DEVICE_COUNT, up to `most`; 1 if it is not set.
int device_count_from_environment(int most);
amps_device* find_device(const amps_api& api, int index);

}  // namespace anymps::lowering
