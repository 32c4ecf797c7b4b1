// SPDX-License-Identifier: Apache-2.0
// A row of weights of 8 or 4 bits times a few rows of x, compiled for each instruction set.
#pragma once

#include <cstdint>

namespace anymps::cpu {

inline constexpr int64_t kPackedRows = 4;  // of x, at most

// sums[r] = sum over groups of scales[g * scale_step] * sum over the group of w * x. Of 4 bits the
// numbers are those stored, 0 to 15, and x is split: elements for the upper halves of the bytes,
// then, at `lower`, for the lower ones.
struct PackedWeightRow {
  const void* w = nullptr;
  int64_t groups = 0, bytes = 0;  // of a group
  const float* scales = nullptr;
  int64_t scale_step = 0;
  const float *x = nullptr, *lower = nullptr;
  int64_t x_row = 0, rows = 0;
  float* sums = nullptr;
};

void multiply_int8(const PackedWeightRow& row);
void multiply_uint8(const PackedWeightRow& row);
void multiply_int4(const PackedWeightRow& row);

}  // namespace anymps::cpu
