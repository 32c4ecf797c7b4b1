// SPDX-License-Identifier: Apache-2.0
// Exact products of bytes, summed in 32 bits. Both operands are read in words of 32 bits: four
// bytes where the processor multiplies and adds these (VNNI), else two numbers of 16 bits, since
// the older instruction for bytes saturates. The right operand lies in panels of some vectors of
// columns, word by word; what only fills up is zero there.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/dtype.h"
#include "drivers/cpu/common/tile_activation.h"

namespace anymps::cpu {

inline constexpr int64_t kMostIntColumns = 64;  // of a panel, on any processor

// How operands are packed, which follows from the instructions that multiply them.
struct IntPacking {
  bool bytes = false;   // words of four bytes; else of two 16-bit numbers
  int64_t lanes = 4;    // words of a vector
  int64_t vectors = 2;  // of a panel, at most

  int64_t per_word() const { return bytes ? 4 : 2; }
  int64_t words(int64_t depth) const { return (depth + per_word() - 1) / per_word(); }
  // The columns of a panel: fewer vectors where there are few columns.
  int64_t width(int64_t columns) const {
    return std::min(vectors, (columns + lanes - 1) / lanes) * lanes;
  }
};
// That of this process: by isa(), and by whether the processor has VNNI.
IntPacking int_packing();
// The same without VNNI, for tests.
IntPacking int_packing_without_vnni();

// What becomes of the sums of a tile.
struct IntTail {
  DType out = DType::kI32;  // or f32, u8, i8
  const float* scale = nullptr;
  int64_t scale_step = 0;       // 0: one for all; 1: one for each row or column, as `by_rows` says
  const float* bias = nullptr;  // null: none; one for each row or column
  bool by_rows = false;
  TileActivation activation;  // none, relu or clamp where out is a byte
  float zero = 0;             // of y
};

// The bounds of rounded results: those of the type and of an activation that is none, relu or
// clamp, without the zero point.
struct ByteBounds {
  float least = 0, most = 0;
};
ByteBounds byte_bounds(const IntTail& tail);
// Whether sums of so many products of bytes fit 32 bits as integers after scales and biases, which
// are finite then.
bool fits_words(int64_t depth, const float* scale, const float* bias, int64_t count);

// What zero points take from the sums: -row[i] * column[j].
struct IntCorrection {
  const int32_t *row = nullptr, *column = nullptr;  // null: nothing
};

// y = tail(sum over k of a[i][k] * b[k][j] + row_start[i] + column_start[j] - corrections)
struct IntProduct {
  const void* a = nullptr;
  int64_t a_row = 0;                // bytes from row to row
  const int64_t* a_rows = nullptr;  // or where in a each begins
  const void* b = nullptr;          // a panel: [words, width] words
  int64_t rows = 0, words = 0, columns = 0;
  // Where the words of a row lie in runs: where each of them begins in the row, and the words of
  // one.
  const int64_t* run_at = nullptr;
  int64_t runs = 1;
  bool signed_a = false;  // with VNNI: which operand is i8; the other is u8
  const int32_t *row_start = nullptr, *column_start = nullptr;
  IntCorrection corrections[2];
  // What is said of columns is all there and can be read to the end of the panel, numbers become
  // bytes, and fits_words: then results leave the registers as they are to be.
  bool direct = false;
  IntTail tail;
  void* y = nullptr;
  int64_t y_row = 0;  // elements from row to row
  // Where only some columns are kept (the lines of an image with a border): column j goes to
  // y[j / line * kept + j % line] if j % line < kept, counted from column `first` of the image.
  int64_t line = 0, kept = 0, first = 0;
};
void multiply_int(const IntPacking& packing, const IntProduct& product);
// The same for sums that are known: rows of them, kMostIntColumns apart and aligned like a vector.
void finish_int(const IntProduct& product, const int32_t* sums);

// One row of a: depth bytes, `step` apart, as words; `flip` swaps i8 and u8 (adds or takes away
// 128). 16-bit numbers are those of `dtype`, and are never flipped.
void pack_int_row(const IntPacking& packing, DType dtype, bool flip, const void* from,
                  int64_t depth, int64_t step, void* to);
// A panel: row k begins at from + offsets[k] and has `columns` dense bytes, but `width` bytes may
// be read there if `slack`. A row that flips is flipped where it only fills up, too: the other
// operand is zero there.
struct IntRows {
  DType dtype = DType::kU8;
  bool flip = false, slack = false;
  const uint8_t* from = nullptr;
  const int64_t* offsets = nullptr;
  int64_t depth = 0, columns = 0;
};
void pack_int_panel(const IntPacking& packing, const IntRows& rows, void* to);

void take_every(const uint8_t* from, int64_t step, int64_t count, uint8_t* to);
int32_t sum_bytes(DType dtype, const void* from, int64_t count, int64_t step);

}  // namespace anymps::cpu
