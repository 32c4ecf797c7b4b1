// SPDX-License-Identifier: Apache-2.0
// Vector functions over a contiguous run of f32: the inside of reductions, softmax and
// normalization. Sums are kept in many lanes, so runs of a few thousand elements lose no precision;
// longer ones are cut by the caller and put together in double.
#pragma once

#include <cstddef>

namespace anymps::cpu {

// y[c] of the elements c of `count` rows: their sum, or what else is joined.
using JoinRows = void (*)(const float* const* rows, size_t count, float* y, size_t n);

struct RowOps {
  float (*sum)(const float* x, size_t n);
  float (*sum_abs)(const float* x, size_t n);
  float (*sum_squares)(const float* x, size_t n);
  float (*product)(const float* x, size_t n);
  // NaN if there is one; the second pair passes over NaN. Infinities for n = 0.
  float (*max)(const float* x, size_t n);
  float (*min)(const float* x, size_t n);
  float (*max_number)(const float* x, size_t n);
  float (*min_number)(const float* x, size_t n);
  // Sum of (x - mean)^2.
  float (*sum_centered)(const float* x, float mean, size_t n);
  // Sum of e^(x - shift), which go to y if it is not null; y may be x.
  float (*exp_sum)(const float* x, float shift, float* y, size_t n);
  // y = (x - mean) * scale * gamma + beta; null: 1 and 0.
  void (*normalize)(const float* x, float mean, float scale, const float* gamma, const float* beta,
                    float* y, size_t n);
  // y = (x - mean) * scale + shift
  void (*affine)(const float* x, float mean, float scale, float shift, float* y, size_t n);
  // The same joins over rows, column by column.
  JoinRows sum_rows, sum_abs_rows, sum_squares_rows;
  JoinRows max_rows, min_rows, max_number_rows, min_number_rows;
};

const RowOps& row_ops();

}  // namespace anymps::cpu
