// SPDX-License-Identifier: Apache-2.0
// Quantizing and dequantizing runs of adjacent elements in f32.
#pragma once

#include <cstddef>

#include "base/dtype.h"

namespace anymps::cpu {

// A run has one scale and zero point (step 0), or one for each element (step 1).
struct QuantRun {
  const void* in = nullptr;
  void* out = nullptr;
  size_t n = 0;
  const float *scale = nullptr, *zero = nullptr;
  size_t step = 0;
};
using QuantFn = void (*)(const QuantRun& run);

// y = (x - zero) * scale, to f32. Null: there is none for the dtype.
QuantFn dequantize_fn(DType from);
// y = saturate(rint(x / scale) + zero), from f32.
QuantFn quantize_fn(DType to);
// y = saturate(rint(x * scale) + zero), from i32, in f64.
QuantFn requantize_fn(DType to);

// The smallest and the largest of n > 0 numbers and 0; NaN is left out.
void range_with_zero(const float* x, size_t n, float& low, float& high);

}  // namespace anymps::cpu
