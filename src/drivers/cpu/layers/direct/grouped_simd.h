// SPDX-License-Identifier: Apache-2.0
// One row of a convolution in groups of few channels, channels last: groups that fill a vector of
// results are summed at once. Compiled for AVX2 and AVX-512.
#pragma once

#include <cstdint>

#include "drivers/cpu/common/tile_activation.h"

namespace anymps::cpu::direct {

// Input channels of a group; oneDNN is faster with more.
inline constexpr int64_t kMostOfGroup = 4;

struct GroupedRow {
  int64_t in_channels = 0, channels = 0;     // of all groups
  int64_t group_in = 0, group_channels = 0;  // of one: 1, 2 or 4, and no fewer results
  int64_t in_width = 0, out_width = 0, width_stride = 1, width_dilation = 1, left = 0;
  int64_t kernel_width = 0;
  // The window's rows that lie in the image.
  int64_t rows = 0, x_row = 0, w_row = 0;  // how many, and the steps from one to the next
  const float* x = nullptr;                // the first of them
  const float* w = nullptr;  // [rows, kernel_width, group_in, lanes] of the first vector of results
  int64_t w_vector = 0;      // to those of the next
  const float* bias = nullptr;      // null: none
  const float* residual = nullptr;  // like y; null: none
  float* y = nullptr;               // [out_width, channels]
  TileActivation activation;
};

void run_grouped(const GroupedRow& row);

}  // namespace anymps::cpu::direct
