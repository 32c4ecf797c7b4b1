// SPDX-License-Identifier: Apache-2.0
// Writes matrices in the panels that products read (gemm_simd.h).
#pragma once

#include <cstdint>

namespace anymps::cpu {

// A panel of a matrix, packed[depth, block] = plain[depth, lanes] with zeros after the lanes.
// Strides are those of the plain matrix. It allocates nothing: for runs.
struct PlainPanel {
  const float* from = nullptr;
  int64_t lane_stride = 1, lanes = 0, depth_stride = 1, depth = 0;
  const double* factors = nullptr;  // of the lanes; null: none

  const double* factors_from(int64_t lane) const { return factors ? factors + lane : nullptr; }
};
void pack_panel(const PlainPanel& plain, int64_t block, float* packed);

}  // namespace anymps::cpu
