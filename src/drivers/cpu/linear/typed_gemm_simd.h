// SPDX-License-Identifier: Apache-2.0
// The innermost part of products of floats, integers and complex numbers, compiled for each
// instruction set. Integers wrap; a complex number is two lanes.
#pragma once

#include <cstdint>

namespace anymps::cpu {

// What a product is computed in: bytes in 16 bits, signed and unsigned alike.
enum class GemmLane { kF32, kF64, kI16, kI32, kI64, kC64, kC128 };

// y[rows, columns] = a[rows, depth] * b[depth, columns], or y += that. Strides are in elements, of
// which a complex one is two lanes.
struct TypedPanel {
  int64_t rows = 0, depth = 0, columns = 0;
  const void* a = nullptr;
  int64_t a_tile = 0, a_row = 0, a_depth = 0;  // from one tile of rows to the next, and inside
  // Rows of whole vectors, as many as the columns need, `b_depth` lanes apart. Complex ones are
  // vectors of the real parts, then as many of the imaginary parts, unless b is not packed.
  const void* b = nullptr;
  int64_t b_depth = 0;
  bool b_packed = true;
  void* y = nullptr;
  int64_t y_row = 0;
  bool adds = false;
};

// y[i * y_step] = sum over k of x[k] * w[i * w_row + k], of real numbers.
struct TypedDots {
  int64_t count = 0, depth = 0;
  const void *x = nullptr, *w = nullptr;
  int64_t w_row = 0;
  void* y = nullptr;
  int64_t y_step = 0;
};

struct TypedGemmCode {
  int64_t lanes = 0;    // columns of a vector
  int64_t vectors = 0;  // of a panel, at most
  int64_t rows = 0;     // of a tile, at most
  void (*panel)(const TypedPanel&) = nullptr;
  void (*dots)(const TypedDots&) = nullptr;  // null for complex numbers
};

TypedGemmCode typed_gemm_code(GemmLane lane);

}  // namespace anymps::cpu
