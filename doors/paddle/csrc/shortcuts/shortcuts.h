// SPDX-License-Identifier: Apache-2.0
// What the library of shortcuts is told of the device once Paddle has it. The plug-in finds the
// function that takes it by name, if the library is there (importing.py).
#pragma once

#include <cstddef>
#include <memory>

#include <paddle/phi/api/include/tensor.h>

namespace anymps::paddle {

struct ShortcutDevice {
  size_t type;  // Paddle's number of the device's name
  int count;    // of devices
  const phi::Place& (*place)(const ::paddle::Tensor&);
  ::paddle::Tensor (*add)(const ::paddle::Tensor&, const ::paddle::Tensor&);  // without a gradient
  // Sums of gradients of which one or both hold rows (gradients/row_sums.h).
  std::shared_ptr<::paddle::Tensor> (*merge_rows)(const ::paddle::Tensor&, const ::paddle::Tensor&);
  void (*add_rows)(const ::paddle::Tensor&, ::paddle::Tensor*);
  void (*rows_plus)(const ::paddle::Tensor&, const ::paddle::Tensor&, ::paddle::Tensor*);
};

// Gives where the index of a thread's current device is from now on.
using CurrentDevice = int* (*)();
using StartShortcuts = CurrentDevice (*)(const ShortcutDevice&);
inline constexpr const char* kStartShortcuts = "anymps_paddle_start_shortcuts";

}  // namespace anymps::paddle
