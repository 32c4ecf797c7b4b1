// SPDX-License-Identifier: Apache-2.0
// Panels of weights of 8 or 4 bits, widened in registers or into a block of floats, compiled for
// AVX2 and AVX-512.
#pragma once

#include <cstdint>

namespace anymps::cpu {

enum class FewBitsCode { kSigned, kUnsigned, kHalves };

// Some columns of b in few bits. Bytes are [depth, width]; of 4 bits [depth / 2, width], the upper
// half of a byte first, with signs.
struct FewBitsPanel {
  FewBitsCode code = FewBitsCode::kSigned;
  const uint8_t* w = nullptr;
  int64_t width = 0, columns = 0;                   // a multiple of 16, and how many of them count
  int64_t group = 0;                                // rows that share a scale
  const float *scales = nullptr, *zeros = nullptr;  // of the first group; null: no zeros
  int64_t step = 0;                                 // from one group to the next
};

inline constexpr int64_t kFewBitsRows = 4;  // at most, of multiply_few_bits

// to[end - begin, width] = w * scale + zero for rows [begin, end), which are even of 4 bits; zeros
// after the columns.
void widen_few_bits(const FewBitsPanel& panel, int64_t begin, int64_t end, float* to);
// y[rows, columns] = x[rows, depth] * b.
void multiply_few_bits(const FewBitsPanel& panel, const float* x, int64_t rows, int64_t depth,
                       float* y, int64_t y_row);

}  // namespace anymps::cpu
