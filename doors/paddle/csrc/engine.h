// SPDX-License-Identifier: Apache-2.0
// The engine, as the plug-in sees it: one table of functions out of a library that is loaded by
// hand, so that no symbol of it meets one of Paddle's. Kernels and the runtime go through these
// four functions.
#pragma once

#include <cstdint>

#include "anymps/anymps.h"

namespace anymps::paddle {

// Loaded at the first call: ANYMPS_LIBRARY, or libanymps.so beside the plug-in. Throws a Paddle
// error if there is none.
const amps_api& engine();

// How many devices Paddle sees: ANYMPS_DEVICE_COUNT, 1 to 64; 1 unless it is set.
int device_count();

// Paddle's device `index`: the engine's default device (ANYMPS_DRIVER), or a further one of the
// same driver.
amps_device* device(int index);

// Throws a Paddle error that carries amps_last_error(), unless the status is AMPS_OK. To be called
// on the thread that made the failing call, before it makes another.
void check(amps_status status);

}  // namespace anymps::paddle
