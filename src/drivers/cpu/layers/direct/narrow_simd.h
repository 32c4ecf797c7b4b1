// SPDX-License-Identifier: Apache-2.0
// One row of a convolution with few output channels, channels last: vectors go along the window's
// pixels and input channels, and are summed up at the end.
#pragma once

#include <cstdint>

#include "drivers/cpu/common/tile_activation.h"

namespace anymps::cpu {

inline constexpr int64_t kNarrowChannels = 8;  // of the output, at most

struct NarrowRow {
  int64_t in_channels = 0, out_channels = 0;
  int64_t in_width = 0, out_width = 0, width_stride = 1, width_dilation = 1, left = 0;
  int64_t kernel_width = 0;
  // The lines of the image under the window that lie inside, and the weights of each:
  // [out_channels, kernel_width, in_channels].
  int64_t lines = 0;
  const float* const* x = nullptr;
  const float* const* w = nullptr;
  const float* bias = nullptr;      // null: none
  const float* residual = nullptr;  // like y; null: none
  float* y = nullptr;               // [out_width, out_channels]
  TileActivation activation;
};

void run_narrow(const NarrowRow& row);

}  // namespace anymps::cpu
