// SPDX-License-Identifier: Apache-2.0
// Moves a block of rows and columns between strided memory and a dense tile, by element size.
#pragma once

#include <cstddef>
#include <cstdint>

namespace anymps::cpu {

// Strides are in elements. The dense side is row-major.
void gather_tile(void* tile, const void* from, size_t element, int64_t rows, int64_t columns,
                 int64_t row_stride, int64_t column_stride);
void scatter_tile(void* to, const void* tile, size_t element, int64_t rows, int64_t columns,
                  int64_t row_stride, int64_t column_stride);

// `n` copies of one element.
void fill_tile(void* tile, const void* element_at, size_t element, int64_t n);

}  // namespace anymps::cpu
