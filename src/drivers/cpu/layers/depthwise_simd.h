// SPDX-License-Identifier: Apache-2.0
// One row of a depthwise convolution, channels last, compiled for AVX2 and AVX-512.
#pragma once

#include <cstdint>

#include "drivers/cpu/common/tile_activation.h"

namespace anymps::cpu {

struct DepthwiseRow {
  int64_t channels = 0;
  int64_t in_width = 0, out_width = 0, width_stride = 1, width_dilation = 1, left = 0;
  int64_t kernel_width = 0;
  // The window's rows that lie in the image.
  int64_t rows = 0, x_row = 0, w_row = 0;  // how many, and the steps from one to the next
  const float* x = nullptr;                // the first of them
  const float* w = nullptr;                // [rows, kernel_width, channels]
  const float* bias = nullptr;             // null: none
  const float* residual = nullptr;         // like y; null: none
  float* y = nullptr;                      // [out_width, channels]
  TileActivation activation;
};

bool depthwise_is_here();  // whether the processor can run it, and ANYMPS_ISA allows it
void run_depthwise(const DepthwiseRow& row);

}  // namespace anymps::cpu
