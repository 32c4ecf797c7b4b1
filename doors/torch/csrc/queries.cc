// SPDX-License-Identifier: Apache-2.0
// What the Python layer asks for.
#include "device/allocator.h"
#include "device/written.h"
#include "engine.h"
#include "strict.h"

namespace anymps::aten {

#define ANYMPS_TORCH_EXPORT extern "C" __attribute__((visibility("default")))

ANYMPS_TORCH_EXPORT void* anymps_torch_allocator() {
  return static_cast<c10::Allocator*>(&allocator());
}
ANYMPS_TORCH_EXPORT const char* anymps_torch_describe() {
  return engine().device_description(device());
}
ANYMPS_TORCH_EXPORT int anymps_torch_cores() { return engine().device_max_threads(device()); }
ANYMPS_TORCH_EXPORT int anymps_torch_strict() { return strict(); }
ANYMPS_TORCH_EXPORT void anymps_torch_set_strict(int on) { set_strict(on != 0); }
// What writes past the kernels, by addresses, says so. The storage as Python's `_cdata`.
ANYMPS_TORCH_EXPORT void anymps_torch_note_write(const void* storage) {
  note_write_of_watched(static_cast<const c10::StorageImpl*>(storage));
}

}  // namespace anymps::aten
