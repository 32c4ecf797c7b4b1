// SPDX-License-Identifier: Apache-2.0
// Which devices there are, which one a thread uses, and what they can do.
#include <dlfcn.h>

#include <algorithm>
#include <array>

#include <paddle/phi/common/place.h>
#include "engine.h"
#include "gradients/gradient_sum.h"
#include "gradients/row_sums.h"
#include "runtime/slots.h"
#include "shortcuts/shortcuts.h"

namespace anymps::paddle {
namespace {

// Where a thread has the index of its device: here, or where the shortcuts find it sooner.
CurrentDevice current_device = [] {
  thread_local int index = 0;
  return &index;
};

C_Status nothing_to_do() { return C_SUCCESS; }
C_Status nothing_for_device(C_Device) { return C_SUCCESS; }

C_Status set_device(C_Device target) {
  device(target->id);  // throws for one that does not exist
  *current_device() = target->id;
  return C_SUCCESS;
}

C_Status get_device(C_Device target) {
  target->id = *current_device();
  return C_SUCCESS;
}

C_Status synchronize_device(C_Device target) {
  check(engine().device_synchronize(device(target->id)));
  return C_SUCCESS;
}

C_Status count_devices(size_t* count) {
  *count = device_count();
  return C_SUCCESS;
}

C_Status list_devices(size_t* devices) {
  for (int i = 0; i < device_count(); ++i) devices[i] = i;
  return C_SUCCESS;
}

C_Status count_threads(C_Device target, size_t* count) {
  *count = std::max(engine().device_max_threads(device(target->id)), 1);
  return C_SUCCESS;
}

C_Status one(C_Device, size_t* value) {
  *value = 1;
  return C_SUCCESS;
}

C_Status one_block(C_Device, std::array<unsigned int, 3>* dims) {
  dims->fill(1);
  return C_SUCCESS;
}

// As a number, like CUDA's: 0.1.0 is 100.
C_Status engine_version(C_Device, size_t* version) {
  size_t number = 0, part = 0;
  for (const char* at = engine().version();; ++at) {
    if (*at >= '0' && *at <= '9') {
      part = part * 10 + (*at - '0');
      continue;
    }
    number = number * 100 + part;
    part = 0;
    if (*at != '.') break;
  }
  *version = number;
  return C_SUCCESS;
}

C_Status supported(C_Device, bool* answer) {
  *answer = true;
  return C_SUCCESS;
}

}  // namespace

void fill_device(C_DeviceInterface& slots) {
  slots.initialize = nothing_to_do;
  slots.finalize = nothing_to_do;  // devices live as long as the process
  slots.init_device = set_device;
  slots.deinit_device = nothing_for_device;
  slots.set_device = set_device;
  slots.get_device = get_device;
  slots.synchronize_device = synchronize_device;
  slots.get_device_count = count_devices;
  slots.get_device_list = list_devices;
  slots.get_compute_capability = one;
  slots.get_runtime_version = engine_version;
  slots.get_driver_version = engine_version;
  slots.get_multi_process = count_threads;
  slots.get_max_threads_per_mp = one;
  slots.get_max_threads_per_block = one;
  slots.get_max_grid_dim_size = one_block;
  slots.is_float16_supported = supported;
  slots.is_bfloat16_supported = supported;
}

void start_shortcuts() {
  const auto start = reinterpret_cast<StartShortcuts>(dlsym(RTLD_DEFAULT, kStartShortcuts));
  if (!start) return;
  auto& names = phi::CustomRegisteredDeviceMap::Instance();
  current_device = start(
      {.type = names.GetOrRegisterGlobalDeviceTypeId("mps"),
       .count = device_count(),
       .place = [](const ::paddle::Tensor& tensor) -> const phi::Place& { return tensor.place(); },
       .add = gradient_sum,
       .merge_rows = merged_rows,
       .add_rows = add_rows,
       .rows_plus = rows_plus});
}

}  // namespace anymps::paddle
