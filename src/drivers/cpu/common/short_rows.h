// SPDX-License-Identifier: Apache-2.0
// Softmax and normalization of rows that fit a few registers: each is read once, and no call stands
// between rows, so that one need not wait for the other.
#pragma once

#include <cstddef>
#include <cstdint>

namespace anymps::cpu {

// Rows of f32 that are dense by themselves; steps are elements from one to the next. y may be x.
struct ShortRows {
  const float* x;
  int64_t x_step;
  float* y;
  int64_t y_step;
  int64_t rows;
  size_t length;
};

struct ShortRowOps {
  int64_t most;  // elements of a row
  // A NaN is not the highest; a row that has one is NaN.
  void (*softmax)(const ShortRows& rows);
  void (*log_softmax)(const ShortRows& rows);
  // (x - mean) / sqrt(variance + epsilon) * gamma + beta; null: 1 and 0.
  void (*normalize)(const ShortRows& rows, double epsilon, const float* gamma, const float* beta);
  // x / sqrt(mean of squares + epsilon) * gamma + beta
  void (*normalize_rms)(const ShortRows& rows, double epsilon, const float* gamma,
                        const float* beta);
};

const ShortRowOps& short_row_ops();

}  // namespace anymps::cpu
