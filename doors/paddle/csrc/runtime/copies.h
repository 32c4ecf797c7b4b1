// SPDX-License-Identifier: Apache-2.0
// How much was copied between host and devices since the process began. A training step that leaves
// the device shows here, whatever fast or slow way it took.
#pragma once

#include <cstddef>

namespace anymps::paddle {

enum class Direction { kHostToDevice, kDeviceToHost, kDeviceToDevice };
void count_copy(Direction direction, size_t bytes);

}  // namespace anymps::paddle
