// SPDX-License-Identifier: Apache-2.0
// Tiles of up to 7 rows and 4 vectors stay in registers while the depth is walked through: 7
// divides the pixels of most image models' layers. Other instruction sets have too few registers
// for that; there oneDNN is as good.
#include "drivers/cpu/linear/gemm_simd.h"

#include <algorithm>

#include "drivers/cpu/isa.h"

#define ANYMPS_AVX512_ONLY
#define HWY_TARGET_INCLUDE "drivers/cpu/linear/gemm_simd.cc"
#include "drivers/cpu/all_targets.h"

#include "drivers/cpu/common/activation-inl.h"

HWY_BEFORE_NAMESPACE();
namespace anymps::cpu::HWY_NAMESPACE {

#if HWY_TARGET <= HWY_AVX3

namespace {

using Mask = hn::Mask<Tag>;

// R rows and N vectors; of the last vector the lanes in `last` count.
template <size_t R, size_t N>
HWY_INLINE void tile(const GemmPanel& g, int64_t row, Mask last) {
  const Tag d;
  constexpr auto width = static_cast<int64_t>(N) * kGemmLanes;
  const float* HWY_RESTRICT a = g.a + row * g.a_row;
  const float* HWY_RESTRICT b = g.b;
  V sums[R][N];
  for (size_t n = 0; n < N; ++n) {
    const float* at = g.bias + n * kGemmLanes;
    const V bias = !g.bias      ? hn::Zero(d)
                   : n + 1 == N ? hn::MaskedLoad(last, d, at)
                                : hn::LoadU(d, at);
    for (size_t r = 0; r < R; ++r) sums[r][n] = bias;
  }
  for (int64_t p = 0; p < g.depth; ++p, b += width) {
    V right[N];
    for (size_t n = 0; n < N; ++n) right[n] = hn::LoadU(d, b + n * kGemmLanes);
    for (size_t r = 0; r < R; ++r) {
      const V left = hn::Set(d, a[static_cast<int64_t>(r) * g.a_row + p]);
      for (size_t n = 0; n < N; ++n) sums[r][n] = hn::MulAdd(left, right[n], sums[r][n]);
    }
  }
  if (g.residual) {
    for (size_t r = 0; r < R; ++r) {
      const float* from = g.residual + (row + static_cast<int64_t>(r)) * g.residual_row;
      for (size_t n = 0; n < N; ++n) {
        const float* at = from + n * kGemmLanes;
        sums[r][n] =
            hn::Add(sums[r][n], n + 1 == N ? hn::MaskedLoad(last, d, at) : hn::LoadU(d, at));
      }
    }
  }
  activate_tile(d, g.activation, sums);
  for (size_t r = 0; r < R; ++r) {
    float* to = g.y + (row + static_cast<int64_t>(r)) * g.y_row;
    for (size_t n = 0; n + 1 < N; ++n) hn::StoreU(sums[r][n], d, to + n * kGemmLanes);
    hn::BlendedStore(sums[r][N - 1], last, d, to + (N - 1) * kGemmLanes);
  }
}

template <size_t N>
HWY_NOINLINE void panel(const GemmPanel& g) {
  const Mask last = hn::FirstN(Tag(), g.columns - (static_cast<int64_t>(N) - 1) * kGemmLanes);
  int64_t row = 0;
  for (; row + kGemmRows <= g.rows; row += kGemmRows) tile<kGemmRows, N>(g, row, last);
  switch (g.rows - row) {
    case 1:
      return tile<1, N>(g, row, last);
    case 2:
      return tile<2, N>(g, row, last);
    case 3:
      return tile<3, N>(g, row, last);
    case 4:
      return tile<4, N>(g, row, last);
    case 5:
      return tile<5, N>(g, row, last);
    case 6:
      return tile<6, N>(g, row, last);
    default:
      return;
  }
}

}  // namespace

void run_gemm_here(const GemmPanel& g) {
  switch ((g.columns + kGemmLanes - 1) / kGemmLanes) {
    case 1:
      return panel<1>(g);
    case 2:
      return panel<2>(g);
    case 3:
      return panel<3>(g);
    default:
      return panel<4>(g);
  }
}

// Sums of up to 16 columns, four at a time: reading the weights once is all that takes time.
void run_gemv_here(const GemmPanel& g, int64_t b_column) {
  const Tag d;
  const int64_t whole = g.depth / kGemmLanes * kGemmLanes;
  const Mask rest = hn::FirstN(d, g.depth - whole);
  for (int64_t begin = 0; begin < g.columns; begin += kGemmLanes) {
    const int64_t count = std::min(kGemmLanes, g.columns - begin);
    alignas(64) float sums[kGemmLanes] = {};
    for (int64_t first = 0; first < count; first += 4) {
      const float* b[4];
      V part[4];
      for (int64_t i = 0; i < 4; ++i) {
        b[i] = g.b + (begin + std::min(first + i, count - 1)) * b_column;
        part[i] = hn::Zero(d);
      }
      for (int64_t p = 0; p < whole; p += kGemmLanes) {
        const V a = hn::LoadU(d, g.a + p);
        for (size_t i = 0; i < 4; ++i) part[i] = hn::MulAdd(a, hn::LoadU(d, b[i] + p), part[i]);
      }
      const V a = hn::MaskedLoad(rest, d, g.a + whole);
      for (size_t i = 0; i < 4; ++i)
        part[i] = hn::MulAdd(a, hn::MaskedLoad(rest, d, b[i] + whole), part[i]);
      for (int64_t i = 0; i < 4; ++i) sums[first + i] = hn::GetLane(hn::SumOfLanes(d, part[i]));
    }
    const Mask mask = hn::FirstN(d, count);
    V tile[1][1] = {{hn::Load(d, sums)}};
    if (g.bias) tile[0][0] = hn::Add(tile[0][0], hn::MaskedLoad(mask, d, g.bias + begin));
    if (g.residual) tile[0][0] = hn::Add(tile[0][0], hn::MaskedLoad(mask, d, g.residual + begin));
    activate_tile(d, g.activation, tile);
    hn::BlendedStore(tile[0][0], mask, d, g.y + begin);
  }
}

#else

void run_gemv_here(const GemmPanel&, int64_t) {
  fail(Code::kInternal, "[cpu] the product is compiled for AVX-512 only");
}

void run_gemm_here(const GemmPanel&) {
  fail(Code::kInternal, "[cpu] the product is compiled for AVX-512 only");
}

#endif

}  // namespace anymps::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anymps::cpu {

HWY_EXPORT(run_gemm_here);
HWY_EXPORT(run_gemv_here);

bool gemm_is_here() { return (HWY_TARGETS & HWY_AVX3) != 0 && isa() >= Isa::kAvx512; }

void run_gemm(const GemmPanel& panel) { HWY_DYNAMIC_DISPATCH(run_gemm_here)(panel); }

void run_gemv(const GemmPanel& panel, int64_t b_column) {
  HWY_DYNAMIC_DISPATCH(run_gemv_here)(panel, b_column);
}

}  // namespace anymps::cpu
#endif
