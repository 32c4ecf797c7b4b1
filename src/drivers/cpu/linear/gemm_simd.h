// SPDX-License-Identifier: Apache-2.0
// The innermost part of products with packed weights, compiled for AVX2 and AVX-512.
#pragma once

#include <algorithm>
#include <cstdint>

#include "drivers/cpu/common/tile_activation.h"

namespace anymps::cpu {

inline constexpr int64_t kGemmLanes = 16;   // columns of a vector
inline constexpr int64_t kGemmVectors = 4;  // of a panel, at most
inline constexpr int64_t kGemmRows = 7;     // of a tile, at most

// y[rows, columns] = activation(a[rows, depth] * b[depth, columns] + bias + residual)
struct GemmPanel {
  int64_t rows = 0, depth = 0, columns = 0;
  const float* a = nullptr;
  int64_t a_row = 0;
  const float* b = nullptr;     // [depth, vectors * kGemmLanes], zeros after the columns
  const float* bias = nullptr;  // null: none
  const float* residual = nullptr;
  int64_t residual_row = 0;
  float* y = nullptr;
  int64_t y_row = 0;
  // What is multiplied next: it is asked for meanwhile. 0 floats: nothing.
  const float* next = nullptr;
  int64_t next_count = 0;
  TileActivation activation;
};

// The columns of a product, cut into panels of nearly the same width, in whole vectors.
struct GemmPanels {
  explicit GemmPanels(int64_t columns)
      : vectors((columns + kGemmLanes - 1) / kGemmLanes),
        count((vectors + kGemmVectors - 1) / kGemmVectors) {}
  // The first column of panel i, which is also how many come before it.
  int64_t begin(int64_t i) const {
    return (i * (vectors / count) + std::min(i, vectors % count)) * kGemmLanes;
  }
  int64_t vectors, count;
};

bool gemm_is_here();  // whether the processor can run it, and ANYMPS_ISA allows it
void run_gemm(const GemmPanel& panel);
// One row, with weights as they lie: column i of b is dense, at b + i * b_column.
void run_gemv(const GemmPanel& panel, int64_t b_column);

}  // namespace anymps::cpu
