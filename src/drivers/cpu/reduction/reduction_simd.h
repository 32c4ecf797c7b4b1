// SPDX-License-Identifier: Apache-2.0
// The innermost part of reductions of f64 and of integers of 32 and 64 bits, compiled for each
// instruction set.
#pragma once

#include "base/dtype.h"
#include "drivers/cpu/reduction/reduction.h"

namespace anymps::cpu {

inline constexpr DTypeSet kVectorReduction =
    bit(DType::kF64) | bit(DType::kI32) | bit(DType::kI64) | bit(DType::kU32) | bit(DType::kU64);

// A total is an element of x, or of 64 bits where integers have a mean.
struct ReductionCode {
  size_t total = 0;  // bytes of a total; 0: there is no such code
  void (*start)(void* totals, int64_t count) = nullptr;
  // Joins totals, one by one, with others.
  void (*join)(void* totals, const void* others, int64_t count) = nullptr;
  // Joins a total with n elements that lie side by side.
  void (*run)(const void* x, int64_t n, void* total) = nullptr;
  // Joins `columns` totals with rows of as many elements, `step` elements apart.
  void (*columns)(const void* x, int64_t step, int64_t rows, int64_t columns,
                  void* totals) = nullptr;
  // What totals of `count` elements each become: y[i * step].
  void (*finish)(const void* totals, int64_t n, int64_t count, void* y, int64_t step) = nullptr;
};
ReductionCode reduction_code(DType dtype, Reduction kind, bool propagate_nan);

// Where the first of n elements is that is the greatest (or lowest); a NaN is.
using FindExtremum = int64_t (*)(const void* x, int64_t n);
FindExtremum find_extremum_code(DType dtype, bool max);  // null: there is none

}  // namespace anymps::cpu
