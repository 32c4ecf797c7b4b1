// SPDX-License-Identifier: Apache-2.0
// Tiles stay in registers while the depth is walked through: up to 7 rows and 4 vectors on AVX-512,
// where 7 divides the pixels of most image models' layers, and 6 rows and 2 vectors on AVX2.
#include "drivers/cpu/linear/gemm_simd.h"

#include <hwy/cache_control.h>

#include <algorithm>

#include "drivers/cpu/isa.h"

#define ANYMPS_AVX512_ONLY
#define HWY_TARGET_INCLUDE "drivers/cpu/linear/gemm_simd.cc"
#include "drivers/cpu/all_targets.h"

#include "drivers/cpu/common/activation-inl.h"

HWY_BEFORE_NAMESPACE();
namespace anymps::cpu::HWY_NAMESPACE {

#if HWY_TARGET <= HWY_AVX2

namespace {

using Mask = hn::Mask<Tag>;

#if HWY_TARGET <= HWY_AVX3
constexpr int64_t kLanes = 16, kVectors = 4, kRows = 7;
constexpr size_t kRegisters = 32;
#else
constexpr int64_t kLanes = 8, kVectors = 2, kRows = 6;
constexpr size_t kRegisters = 16;
#endif

constexpr int64_t kColumns = kVectors * kLanes;  // of a panel, at most

// Asks for what is multiplied next, a part of it at each step of each tile: the first tile that
// multiplies weights from memory would wait for most of them.
struct Ahead {
  Ahead(const GemmPanel& g, int64_t tiles)
      : at(reinterpret_cast<const char*>(g.next)),
        step(std::min(g.next_count * 4 / (tiles * g.depth), int64_t{64})) {}
  HWY_INLINE void ask() {
    hwy::Prefetch(at);
    at += step;
  }
  const char* at;
  int64_t step;  // bytes
};
struct Nothing {
  HWY_INLINE void ask() {}
};

// R rows and N vectors from `column` on; of the last vector the lanes in `last` count.
template <size_t R, size_t N, bool kAnyActivation, typename Next>
HWY_INLINE void tile(const GemmPanel& g, int64_t row, int64_t column, int64_t width, Mask last,
                     Next& ahead) {
  const Tag d;
  if (g.residual) {
    for (size_t r = 0; r < R; ++r)
      for (size_t n = 0; n < N; ++n)
        hwy::Prefetch(g.residual + (row + static_cast<int64_t>(r)) * g.residual_row + column +
                      n * kLanes);
  }
  const float* HWY_RESTRICT a = g.a + row * g.a_row;
  const float* HWY_RESTRICT b = g.b + column;
  V sums[R][N];
  for (size_t n = 0; n < N; ++n) {
    const float* at = g.bias + column + n * kLanes;
    const V bias = !g.bias      ? hn::Zero(d)
                   : n + 1 == N ? hn::MaskedLoad(last, d, at)
                                : hn::LoadU(d, at);
    for (size_t r = 0; r < R; ++r) sums[r][n] = bias;
  }
  // What no register is left for is read from the cache by each row: the compiler would rather keep
  // a sum in memory.
  constexpr size_t kHeld = R * N + N + 1 > kRegisters ? N - 1 : N;
  Next next = ahead;  // in registers
  for (int64_t p = 0; p < g.depth; ++p, b += width) {
    if constexpr (N > 1) next.ask();  // with one vector there are as many loads as products
    V right[N];
    for (size_t n = 0; n < kHeld; ++n) right[n] = hn::LoadU(d, b + n * kLanes);
    const float* again = b + kHeld * kLanes;
    for (size_t r = 0; r < R; ++r) {
      const V left = hn::Set(d, a[static_cast<int64_t>(r) * g.a_row + p]);
      for (size_t n = 0; n < kHeld; ++n) sums[r][n] = hn::MulAdd(left, right[n], sums[r][n]);
      if constexpr (kHeld < N) {
        asm("" : "+r"(again));
        sums[r][kHeld] = hn::MulAdd(left, hn::LoadU(d, again), sums[r][kHeld]);
      }
    }
  }
  ahead = next;
  if (g.residual) {
    for (size_t r = 0; r < R; ++r) {
      const float* from = g.residual + (row + static_cast<int64_t>(r)) * g.residual_row + column;
      for (size_t n = 0; n < N; ++n) {
        const float* at = from + n * kLanes;
        sums[r][n] =
            hn::Add(sums[r][n], n + 1 == N ? hn::MaskedLoad(last, d, at) : hn::LoadU(d, at));
      }
    }
  }
  if constexpr (kAnyActivation)
    activate_any(d, g.activation, sums);
  else
    activate_tile(d, g.activation, sums);
  for (size_t r = 0; r < R; ++r) {
    float* to = g.y + (row + static_cast<int64_t>(r)) * g.y_row + column;
    for (size_t n = 0; n + 1 < N; ++n) hn::StoreU(sums[r][n], d, to + n * kLanes);
    hn::BlendedStore(sums[r][N - 1], last, d, to + (N - 1) * kLanes);
  }
}

template <size_t N, bool kAnyActivation, typename Next>
HWY_NOINLINE void vectors(const GemmPanel& g, int64_t column, int64_t width, Next& ahead) {
  const int64_t before = column + (static_cast<int64_t>(N) - 1) * kLanes;
  const Mask last = hn::FirstN(Tag(), static_cast<size_t>(std::min(g.columns - before, kLanes)));
  for (int64_t row = 0; row < g.rows;) {
    // The last two tiles share what is left: few rows leave the multipliers waiting for loads.
    const int64_t left = g.rows - row;
    const int64_t rows = left >= 2 * kRows || left == kRows ? kRows
                         : left > kRows                     ? (left + 1) / 2
                                                            : left;
    switch (rows) {
      case 1:
        tile<1, N, kAnyActivation>(g, row, column, width, last, ahead);
        break;
      case 2:
        tile<2, N, kAnyActivation>(g, row, column, width, last, ahead);
        break;
      case 3:
        tile<3, N, kAnyActivation>(g, row, column, width, last, ahead);
        break;
      case 4:
        tile<4, N, kAnyActivation>(g, row, column, width, last, ahead);
        break;
      case 5:
        tile<5, N, kAnyActivation>(g, row, column, width, last, ahead);
        break;
#if HWY_TARGET <= HWY_AVX3
      case 6:
        tile<6, N, kAnyActivation>(g, row, column, width, last, ahead);
        break;
#endif
      default:
        tile<kRows, N, kAnyActivation>(g, row, column, width, last, ahead);
        break;
    }
    row += rows;
  }
}

template <bool kAnyActivation, typename Next>
void panels(const GemmPanel& g, Next ahead) {
  const int64_t width = (g.columns + kGemmLanes - 1) / kGemmLanes * kGemmLanes;
  for (int64_t column = 0; column < g.columns; column += kColumns) {
    switch (std::min((g.columns - column + kLanes - 1) / kLanes, kVectors)) {
      case 1:
        vectors<1, kAnyActivation>(g, column, width, ahead);
        break;
#if HWY_TARGET <= HWY_AVX3
      case 2:
        vectors<2, kAnyActivation>(g, column, width, ahead);
        break;
      case 3:
        vectors<3, kAnyActivation>(g, column, width, ahead);
        break;
#endif
      default:
        vectors<kVectors, kAnyActivation>(g, column, width, ahead);
        break;
    }
  }
}

}  // namespace

void run_gemm_here(const GemmPanel& g) {
  const bool any = !tile_has(g.activation.kind);
  if (g.next_count == 0) return any ? panels<true>(g, Nothing()) : panels<false>(g, Nothing());
  const int64_t tiles = (g.rows + kRows - 1) / kRows * ((g.columns + kColumns - 1) / kColumns);
  const Ahead ahead(g, tiles);
  any ? panels<true>(g, ahead) : panels<false>(g, ahead);
}

// Sums of up to 16 columns, four at a time: reading the weights once is all that takes time.
void run_gemv_here(const GemmPanel& g, int64_t b_column) {
  const Tag d;
  const int64_t whole = g.depth / kLanes * kLanes;
  const Mask rest = hn::FirstN(d, static_cast<size_t>(g.depth - whole));
  for (int64_t begin = 0; begin < g.columns; begin += kLanes) {
    const int64_t count = std::min(kLanes, g.columns - begin);
    alignas(64) float sums[kLanes] = {};
    for (int64_t first = 0; first < count; first += 4) {
      const float* b[4];
      V part[4];
      for (int64_t i = 0; i < 4; ++i) {
        b[i] = g.b + (begin + std::min(first + i, count - 1)) * b_column;
        part[i] = hn::Zero(d);
      }
      for (int64_t p = 0; p < whole; p += kLanes) {
        const V a = hn::LoadU(d, g.a + p);
        for (size_t i = 0; i < 4; ++i) part[i] = hn::MulAdd(a, hn::LoadU(d, b[i] + p), part[i]);
      }
      const V a = hn::MaskedLoad(rest, d, g.a + whole);
      for (size_t i = 0; i < 4; ++i)
        part[i] = hn::MulAdd(a, hn::MaskedLoad(rest, d, b[i] + whole), part[i]);
      for (int64_t i = 0; i < 4; ++i) sums[first + i] = hn::GetLane(hn::SumOfLanes(d, part[i]));
    }
    const Mask mask = hn::FirstN(d, static_cast<size_t>(count));
    V tile[1][1] = {{hn::Load(d, sums)}};
    if (g.bias) tile[0][0] = hn::Add(tile[0][0], hn::MaskedLoad(mask, d, g.bias + begin));
    if (g.residual) tile[0][0] = hn::Add(tile[0][0], hn::MaskedLoad(mask, d, g.residual + begin));
    if (tile_has(g.activation.kind))
      activate_tile(d, g.activation, tile);
    else
      activate_any(d, g.activation, tile);
    hn::BlendedStore(tile[0][0], mask, d, g.y + begin);
  }
}

#else

void run_gemv_here(const GemmPanel&, int64_t) {
  fail(Code::kInternal, "[cpu] the product is compiled for AVX2 and AVX-512");
}

void run_gemm_here(const GemmPanel&) {
  fail(Code::kInternal, "[cpu] the product is compiled for AVX2 and AVX-512");
}

#endif

}  // namespace anymps::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anymps::cpu {

HWY_EXPORT(run_gemm_here);
HWY_EXPORT(run_gemv_here);

bool gemm_is_here() {
  return ((HWY_TARGETS & HWY_AVX3) != 0 && isa() >= Isa::kAvx512) ||
         ((HWY_TARGETS & HWY_AVX2) != 0 && isa() == Isa::kAvx2);
}

void run_gemm(const GemmPanel& panel) { HWY_DYNAMIC_DISPATCH(run_gemm_here)(panel); }

void run_gemv(const GemmPanel& panel, int64_t b_column) {
  HWY_DYNAMIC_DISPATCH(run_gemv_here)(panel, b_column);
}

}  // namespace anymps::cpu
#endif
