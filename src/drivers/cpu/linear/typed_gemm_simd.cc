// SPDX-License-Identifier: Apache-2.0
// A tile of sums stays in registers while the depth is walked through. Each sum is one chain of
// products in the order of the depth, so it is the same in tiles of any size.
#include "drivers/cpu/linear/typed_gemm_simd.h"

#include <algorithm>
#include <complex>
#include <cstring>

#include "drivers/cpu/isa.h"

#define HWY_TARGET_INCLUDE "drivers/cpu/linear/typed_gemm_simd.cc"
#include "drivers/cpu/all_targets.h"

HWY_BEFORE_NAMESPACE();
namespace anymps::cpu::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// 32 registers hold 6 rows of 4 vectors and what they are multiplied with, 16 hold 6 of 2.
#if HWY_TARGET <= HWY_AVX3 || HWY_ARCH_ARM_A64
constexpr size_t kSumVectors = 4;
#else
constexpr size_t kSumVectors = 2;
#endif
constexpr size_t kTileRows = 6;

template <class V>
HWY_INLINE V multiply_add(V a, V b, V sum) {
  if constexpr (hwy::IsFloat<hn::TFromV<V>>())
    return hn::MulAdd(a, b, sum);
  else
    return hn::Add(hn::Mul(a, b), sum);
}

// Real numbers of type T: a tile of R rows and N vectors.
template <typename T>
struct RealTile {
  using Element = T;
  static constexpr size_t kVectors = kSumVectors;
  static constexpr size_t kParts = 1;
  static constexpr size_t kLanes = hn::MaxLanes(hn::ScalableTag<T>());

  template <size_t R, size_t N>
  static HWY_INLINE void run(const TypedPanel& p, const T* HWY_RESTRICT a, T* HWY_RESTRICT y,
                             int64_t y_row, bool adds) {
    const hn::ScalableTag<T> d;
    using V = hn::Vec<decltype(d)>;
    const T* HWY_RESTRICT b = static_cast<const T*>(p.b);
    const int64_t a_row = p.a_row, a_depth = p.a_depth, b_depth = p.b_depth;
    V sums[R][N];
    for (size_t r = 0; r < R; ++r)
      for (size_t n = 0; n < N; ++n) sums[r][n] = hn::Zero(d);
    for (int64_t k = 0; k < p.depth; ++k, a += a_depth, b += b_depth) {
      V right[N];
      for (size_t n = 0; n < N; ++n) right[n] = hn::LoadU(d, b + n * kLanes);
      for (size_t r = 0; r < R; ++r) {
        const V left = hn::Set(d, a[static_cast<int64_t>(r) * a_row]);
        for (size_t n = 0; n < N; ++n) sums[r][n] = multiply_add(left, right[n], sums[r][n]);
      }
    }
    for (size_t r = 0; r < R; ++r, y += y_row)
      for (size_t n = 0; n < N; ++n) {
        if (adds) sums[r][n] = hn::Add(hn::LoadU(d, y + n * kLanes), sums[r][n]);
        hn::StoreU(sums[r][n], d, y + n * kLanes);
      }
  }
};

// Complex numbers of two T: four products of real numbers.
template <typename T>
struct ComplexTile {
  using Element = std::complex<T>;
  static constexpr size_t kVectors = kSumVectors / 2;
  static constexpr size_t kParts = 2;
  static constexpr size_t kLanes = hn::MaxLanes(hn::ScalableTag<T>());

  template <size_t R, size_t N>
  static HWY_INLINE void run(const TypedPanel& p, const Element* from, Element* to, int64_t y_row,
                             bool adds) {
    const hn::ScalableTag<T> d;
    using V = hn::Vec<decltype(d)>;
    const T* HWY_RESTRICT a = reinterpret_cast<const T*>(from);
    const T* HWY_RESTRICT b = static_cast<const T*>(p.b);
    const int64_t a_row = 2 * p.a_row, a_depth = 2 * p.a_depth, b_depth = p.b_depth;
    const bool b_packed = p.b_packed;
    V real[R][N], imaginary[R][N];
    for (size_t r = 0; r < R; ++r)
      for (size_t n = 0; n < N; ++n) real[r][n] = imaginary[r][n] = hn::Zero(d);
    for (int64_t k = 0; k < p.depth; ++k, a += a_depth, b += b_depth) {
      V c[N], s[N];
      for (size_t n = 0; n < N; ++n) {
        if (b_packed) {
          c[n] = hn::LoadU(d, b + n * kLanes);
          s[n] = hn::LoadU(d, b + (N + n) * kLanes);
        } else {
          hn::LoadInterleaved2(d, b + 2 * n * kLanes, c[n], s[n]);
        }
      }
      for (size_t r = 0; r < R; ++r) {
        const T* at = a + static_cast<int64_t>(r) * a_row;
        const V x = hn::Set(d, at[0]);
        for (size_t n = 0; n < N; ++n) {
          real[r][n] = hn::MulAdd(x, c[n], real[r][n]);
          imaginary[r][n] = hn::MulAdd(x, s[n], imaginary[r][n]);
        }
        const V y = hn::Set(d, at[1]);
        for (size_t n = 0; n < N; ++n) {
          real[r][n] = hn::NegMulAdd(y, s[n], real[r][n]);
          imaginary[r][n] = hn::MulAdd(y, c[n], imaginary[r][n]);
        }
      }
    }
    for (size_t r = 0; r < R; ++r, to += y_row)
      for (size_t n = 0; n < N; ++n) {
        T* HWY_RESTRICT y = reinterpret_cast<T*>(to + n * kLanes);
        if (adds) {
          V c, s;
          hn::LoadInterleaved2(d, y, c, s);
          real[r][n] = hn::Add(c, real[r][n]);
          imaginary[r][n] = hn::Add(s, imaginary[r][n]);
        }
        hn::StoreInterleaved2(real[r][n], imaginary[r][n], d, y);
      }
  }
};

// R rows. Where the last vector is cut, they go through a tile of whole ones.
template <class Tile, size_t R, size_t N>
HWY_INLINE void rows_of_tile(const TypedPanel& p, int64_t row) {
  using E = typename Tile::Element;
  constexpr auto kRows = static_cast<int64_t>(kTileRows);
  constexpr auto kWidth = static_cast<int64_t>(N * Tile::kLanes);
  const E* a = static_cast<const E*>(p.a) + row / kRows * p.a_tile + row % kRows * p.a_row;
  E* y = static_cast<E*>(p.y) + row * p.y_row;
  if (p.columns == kWidth) return Tile::template run<R, N>(p, a, y, p.y_row, p.adds);
  HWY_ALIGN E whole[R * static_cast<size_t>(kWidth)];
  const size_t bytes = static_cast<size_t>(p.columns) * sizeof(E);
  E* to = whole;
  for (size_t r = 0; r < R && p.adds; ++r, to += kWidth)
    std::memcpy(static_cast<void*>(to), y + static_cast<int64_t>(r) * p.y_row, bytes);
  Tile::template run<R, N>(p, a, whole, kWidth, p.adds);
  to = whole;
  for (size_t r = 0; r < R; ++r, to += kWidth)
    std::memcpy(static_cast<void*>(y + static_cast<int64_t>(r) * p.y_row), to, bytes);
}

template <class Tile, size_t N>
HWY_NOINLINE void panel_of(const TypedPanel& p) {
  constexpr auto kRows = static_cast<int64_t>(kTileRows);
  int64_t row = 0;
  for (; row + kRows <= p.rows; row += kRows) rows_of_tile<Tile, kTileRows, N>(p, row);
  if (row + 4 <= p.rows) rows_of_tile<Tile, 4, N>(p, row), row += 4;
  if (row + 2 <= p.rows) rows_of_tile<Tile, 2, N>(p, row), row += 2;
  if (row < p.rows) rows_of_tile<Tile, 1, N>(p, row);
}

template <class Tile>
void typed_panel(const TypedPanel& p) {
  constexpr auto kLanes = static_cast<int64_t>(Tile::kLanes);
  const int64_t vectors = (p.columns + kLanes - 1) / kLanes;
  if (vectors == 1) return panel_of<Tile, 1>(p);
  if constexpr (Tile::kVectors >= 2)
    if (vectors == 2) return panel_of<Tile, 2>(p);
  if constexpr (Tile::kVectors >= 4) {
    if (vectors == 3) return panel_of<Tile, 3>(p);
    return panel_of<Tile, 4>(p);
  }
}

// Four sums at a time: reading w once is all that takes time.
template <typename T>
void typed_dots(const TypedDots& p) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  constexpr auto kLanes = static_cast<int64_t>(hn::MaxLanes(hn::ScalableTag<T>()));
  const T* HWY_RESTRICT x = static_cast<const T*>(p.x);
  T* y = static_cast<T*>(p.y);
  const int64_t whole = p.depth / kLanes * kLanes, rest = p.depth - whole;
  HWY_ALIGN T last[kLanes] = {}, ends[kLanes] = {};
  if (rest) std::memcpy(last, x + whole, static_cast<size_t>(rest) * sizeof(T));
  for (int64_t first = 0; first < p.count; first += 4) {
    const T* w[4];
    V sums[4];
    for (int64_t i = 0; i < 4; ++i) {
      w[i] = static_cast<const T*>(p.w) + std::min(first + i, p.count - 1) * p.w_row;
      sums[i] = hn::Zero(d);
    }
    for (int64_t k = 0; k < whole; k += kLanes) {
      const V left = hn::LoadU(d, x + k);
      for (size_t i = 0; i < 4; ++i) sums[i] = multiply_add(left, hn::LoadU(d, w[i] + k), sums[i]);
    }
    for (int64_t i = 0; i < std::min<int64_t>(4, p.count - first); ++i) {
      if (rest) {
        std::memcpy(ends, w[i] + whole, static_cast<size_t>(rest) * sizeof(T));
        sums[i] = multiply_add(hn::Load(d, last), hn::Load(d, ends), sums[i]);
      }
      y[(first + i) * p.y_step] = hn::GetLane(hn::SumOfLanes(d, sums[i]));
    }
  }
}

template <class Tile>
TypedGemmCode code_of_tile() {
  TypedGemmCode code;
  code.lanes = static_cast<int64_t>(Tile::kLanes);
  code.vectors = static_cast<int64_t>(Tile::kVectors);
  code.rows = static_cast<int64_t>(kTileRows);
  code.panel = typed_panel<Tile>;
  if constexpr (Tile::kParts == 1) code.dots = typed_dots<typename Tile::Element>;
  return code;
}

TypedGemmCode typed_gemm_code_here(GemmLane lane) {
  switch (lane) {
    case GemmLane::kF32:
      return code_of_tile<RealTile<float>>();
    case GemmLane::kF64:
      return code_of_tile<RealTile<double>>();
    case GemmLane::kI16:
      return code_of_tile<RealTile<int16_t>>();
    case GemmLane::kI32:
      return code_of_tile<RealTile<int32_t>>();
    case GemmLane::kI64:
      return code_of_tile<RealTile<int64_t>>();
    case GemmLane::kC64:
      return code_of_tile<ComplexTile<float>>();
    case GemmLane::kC128:
      return code_of_tile<ComplexTile<double>>();
  }
  return {};
}

}  // namespace
}  // namespace anymps::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anymps::cpu {

HWY_EXPORT(typed_gemm_code_here);

TypedGemmCode typed_gemm_code(GemmLane lane) {
  isa();
  return HWY_DYNAMIC_DISPATCH(typed_gemm_code_here)(lane);
}

}  // namespace anymps::cpu
#endif
