// SPDX-License-Identifier: Apache-2.0
// The entry that plugin/plugin.cc calls once it knows that this is the right Paddle.
#include <algorithm>
#include <cstring>
#include <string>

#include <paddle/phi/backends/device_ext.h>
#include "engine.h"
#include "runtime/slots.h"

namespace anymps::paddle {

// NULL, or why there can be no device. Whatever can go wrong goes wrong here, where Paddle can do
// without it: if the slot `initialize` failed, Paddle would end the process.
extern "C" __attribute__((visibility("default"))) const char* anymps_paddle_fill(
    CustomRuntimeParams* params) {
  static std::string error;
  try {
    for (int i = 0; i < device_count(); ++i) device(i);
  } catch (const std::exception& e) {
    error = e.what();
    error.resize(std::min(error.find(" (at /"), error.size()));  // without Paddle's file and line
    return error.c_str();
  }
  C_DeviceInterface& slots = *params->interface;
  const size_t size = slots.size;
  std::memset(static_cast<void*>(&slots), 0, sizeof(slots));
  slots.size = size;
  fill_device(slots);
  fill_memory(slots);
  fill_streams(slots);
  fill_profiler(slots);
  fill_arithmetic(slots);
  // Paddle keeps the pointers and never writes through them.
  params->device_type = const_cast<char*>("mps");
  params->sub_device_type = const_cast<char*>("anymps");
  params->version = {PADDLE_CUSTOM_RUNTIME_MAJOR_VERSION, PADDLE_CUSTOM_RUNTIME_MINOR_VERSION,
                     PADDLE_CUSTOM_RUNTIME_PATCH_VERSION};
  start_shortcuts();
  return nullptr;
}

}  // namespace anymps::paddle
