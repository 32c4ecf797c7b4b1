// SPDX-License-Identifier: Apache-2.0
// What crosses between the host and the device: counted, and, with ANYMPS_TRANSFER=copy, as slow as
// between a host and a device that has memory of its own.
#pragma once

#include <cstddef>

#include <c10/core/Device.h>
#include "device/events.h"

namespace anymps::aten {

// Whether a fallback is to copy what it hands over, as if the memory were not the same.
bool transfers_are_copies();

// Lives as long as the copy that it stands for, and then as long as the model says that one takes.
class Transfer {
 public:
  Transfer(c10::Device from, c10::Device to, size_t bytes);
  ~Transfer();
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;

 private:
  Moment end_;
};

}  // namespace anymps::aten
