// SPDX-License-Identifier: Apache-2.0
// Products of small matrices that are in the cache, and transposes into it: what attention and its
// gradient are made of. Rows of the second factor and of the result are aligned and padded.

// Included once for each instruction set.
#if defined(ANYMPS_ATTENTION_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef ANYMPS_ATTENTION_INL_H
#undef ANYMPS_ATTENTION_INL_H
#else
#define ANYMPS_ATTENTION_INL_H
#endif

#include <hwy/highway.h>

#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace anymps::cpu {
namespace HWY_NAMESPACE {
namespace attention {

namespace hn = hwy::HWY_NAMESPACE;
using Tag = hn::ScalableTag<float>;
using V = hn::Vec<Tag>;

// How many vectors wide a tile of results is: what the registers hold.
constexpr size_t kTileVectors = HWY_TARGET <= HWY_AVX3 ? 4 : 2;

// c[R, N vectors] = a[R, depth] * b[depth, N vectors], added to c if asked for.
template <bool add, size_t R, size_t N>
HWY_INLINE void multiply_tile(int64_t depth, const float* HWY_RESTRICT a, int64_t a_row,
                              int64_t a_column, const float* HWY_RESTRICT b, int64_t b_row,
                              float* HWY_RESTRICT c, int64_t c_row) {
  const Tag d;
  const size_t lanes = hn::Lanes(d);
  V sums[R][N];
  for (size_t r = 0; r < R; ++r)
    for (size_t n = 0; n < N; ++n)
      sums[r][n] = add ? hn::Load(d, c + static_cast<int64_t>(r) * c_row + n * lanes) : hn::Zero(d);
  for (int64_t p = 0; p < depth; ++p, a += a_column, b += b_row) {
    V right[N];
    for (size_t n = 0; n < N; ++n) right[n] = hn::LoadU(d, b + n * lanes);
    for (size_t r = 0; r < R; ++r) {
      const V left = hn::Set(d, a[static_cast<int64_t>(r) * a_row]);
      for (size_t n = 0; n < N; ++n) sums[r][n] = hn::MulAdd(left, right[n], sums[r][n]);
    }
  }
  for (size_t r = 0; r < R; ++r)
    for (size_t n = 0; n < N; ++n)
      hn::Store(sums[r][n], d, c + static_cast<int64_t>(r) * c_row + n * lanes);
}

template <bool add, size_t R>
void multiply_rows(int64_t depth, const float* a, int64_t a_row, int64_t a_column, const float* b,
                   int64_t b_row, float* c, int64_t c_row, int64_t columns) {
  const int64_t lanes = hn::Lanes(Tag());
  constexpr auto wide = static_cast<int64_t>(kTileVectors);
  int64_t j = 0;
  for (; j + wide * lanes <= columns; j += wide * lanes)
    multiply_tile<add, R, kTileVectors>(depth, a, a_row, a_column, b + j, b_row, c + j, c_row);
  for (; j < columns; j += lanes)
    multiply_tile<add, R, 1>(depth, a, a_row, a_column, b + j, b_row, c + j, c_row);
}

// Up to kAttentionRows rows; `columns` is a multiple of the vector's lanes.
template <bool add>
void multiply(int64_t rows, int64_t depth, const float* a, int64_t a_row, int64_t a_column,
              const float* b, int64_t b_row, float* c, int64_t c_row, int64_t columns) {
  switch (rows) {
#define ANYMPS_ROWS(n) \
  case n:              \
    return multiply_rows<add, n>(depth, a, a_row, a_column, b, b_row, c, c_row, columns);
    ANYMPS_ROWS(1)
    ANYMPS_ROWS(2)
    ANYMPS_ROWS(3)
    ANYMPS_ROWS(4)
    ANYMPS_ROWS(5)
    default:
      ANYMPS_ROWS(6)
#undef ANYMPS_ROWS
  }
}

// to[depth, columns] = from[rows, depth] transposed, 0 in the columns after the rows.
inline void transpose(const float* from, int64_t from_row, int64_t rows, int64_t depth, float* to,
                      int64_t columns) {
  const hn::FixedTag<float, 4> d;
  const hn::FixedTag<double, 2> pairs;
  int64_t i = 0;
  for (; i + 4 <= rows; i += 4) {
    const float* at = from + i * from_row;
    int64_t j = 0;
    for (; j + 4 <= depth; j += 4) {
      const auto r0 = hn::LoadU(d, at + j), r1 = hn::LoadU(d, at + from_row + j);
      const auto r2 = hn::LoadU(d, at + 2 * from_row + j), r3 = hn::LoadU(d, at + 3 * from_row + j);
      const auto low01 = hn::BitCast(pairs, hn::InterleaveLower(d, r0, r1));
      const auto low23 = hn::BitCast(pairs, hn::InterleaveLower(d, r2, r3));
      const auto high01 = hn::BitCast(pairs, hn::InterleaveUpper(d, r0, r1));
      const auto high23 = hn::BitCast(pairs, hn::InterleaveUpper(d, r2, r3));
      float* out = to + j * columns + i;
      hn::Store(hn::BitCast(d, hn::InterleaveLower(pairs, low01, low23)), d, out);
      hn::Store(hn::BitCast(d, hn::InterleaveUpper(pairs, low01, low23)), d, out + columns);
      hn::Store(hn::BitCast(d, hn::InterleaveLower(pairs, high01, high23)), d, out + 2 * columns);
      hn::Store(hn::BitCast(d, hn::InterleaveUpper(pairs, high01, high23)), d, out + 3 * columns);
    }
    for (; j < depth; ++j)
      for (int64_t r = 0; r < 4; ++r) to[j * columns + i + r] = at[r * from_row + j];
  }
  for (; i < rows; ++i)
    for (int64_t j = 0; j < depth; ++j) to[j * columns + i] = from[i * from_row + j];
  for (; i < columns; ++i)
    for (int64_t j = 0; j < depth; ++j) to[j * columns + i] = 0;
}

}  // namespace attention
}  // namespace HWY_NAMESPACE
}  // namespace anymps::cpu
HWY_AFTER_NAMESPACE();

#endif
