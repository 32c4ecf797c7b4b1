// SPDX-License-Identifier: Apache-2.0
// Where the greatest or lowest elements of lines are that lie side by side, compiled for each
// instruction set.
#pragma once

#include "base/dtype.h"
#include "drivers/cpu/reduction/reduction_simd.h"

namespace anymps::cpu {

inline constexpr DTypeSet kVectorExtremum = kVectorReduction | bit(DType::kF32);
inline constexpr int64_t kExtremumColumns = 512;  // lines at most

// places[c] = where the extremum of x[c], x[c + step], … of n elements is: the first, or the last.
// A NaN is one. Columns that do not fill a vector are left to the caller: returns how many are
// done.
using FindColumns = int64_t (*)(const void* x, int64_t columns, int64_t n, int64_t step,
                                int32_t* places);
// y[r * y_step] = where the first extremum is of n elements from x + r * x_step on; n is at most
// kShortLine. A NaN is one.
inline constexpr int64_t kShortLine = 64;
using FindInRows = void (*)(const float* x, int64_t x_step, int64_t rows, int64_t n, int64_t* y,
                            int64_t y_step);
FindInRows find_in_rows_code(bool max);

FindColumns find_columns_code(DType dtype, bool max, bool last);  // null: there is none

}  // namespace anymps::cpu
