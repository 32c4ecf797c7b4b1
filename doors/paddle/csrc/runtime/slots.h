// SPDX-License-Identifier: Apache-2.0
// The parts of Paddle's C_DeviceInterface, each filled in by the file of its name. A slot reports a
// failure by throwing a Paddle error (engine.h), which reaches the user with the engine's words; a
// status would reach them as a number.
#pragma once

#include <paddle/phi/backends/device_ext.h>

namespace anymps::paddle {

void fill_device(C_DeviceInterface& slots);
void fill_memory(C_DeviceInterface& slots);
void fill_streams(C_DeviceInterface& slots);
void fill_profiler(C_DeviceInterface& slots);
void fill_arithmetic(C_DeviceInterface& slots);

// Tells the library of shortcuts of the device, if it is in the process.
void start_shortcuts();

}  // namespace anymps::paddle
