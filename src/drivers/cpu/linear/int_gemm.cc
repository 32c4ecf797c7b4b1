// SPDX-License-Identifier: Apache-2.0
// Compiled once for each instruction set.
#include "drivers/cpu/linear/int_gemm.h"

#include <algorithm>
#include <cstring>

#include "drivers/cpu/isa.h"

#define HWY_TARGET_INCLUDE "drivers/cpu/linear/int_gemm.cc"
#include "drivers/cpu/all_targets.h"

HWY_BEFORE_NAMESPACE();
namespace anymps::cpu::HWY_NAMESPACE {
namespace {

using D32 = hn::ScalableTag<int32_t>;
using D16 = hn::ScalableTag<int16_t>;

#if HWY_ARCH_X86
// kRows rows of y over two vectors of columns.
template <int kRows>
HWY_INLINE void block(const PanelProduct& p, int64_t row, int64_t column, int32_t* to,
                      int64_t to_row) {
  const D32 d32;
  const D16 d16;
  constexpr int64_t kLanes = static_cast<int64_t>(hn::MaxLanes(D32()));
  using V32 = hn::Vec<D32>;
  V32 sums[kRows][2];
  V32 unused = hn::Zero(d32);
  for (int r = 0; r < kRows; ++r) sums[r][0] = sums[r][1] = hn::Zero(d32);
  const int16_t* b = p.panel + 2 * column;
  const int16_t* a = p.a + row * p.depth;
  for (int64_t k = 0; k < p.depth; k += 2, b += 2 * kIntPanel) {
    const auto b0 = hn::LoadU(d16, b), b1 = hn::LoadU(d16, b + 2 * kLanes);
    for (int r = 0; r < kRows; ++r) {
      int32_t pair;
      std::memcpy(&pair, a + r * p.depth + k, sizeof pair);
      const auto both = hn::BitCast(d16, hn::Set(d32, pair));
      sums[r][0] = hn::ReorderWidenMulAccumulate(d32, both, b0, sums[r][0], unused);
      sums[r][1] = hn::ReorderWidenMulAccumulate(d32, both, b1, sums[r][1], unused);
    }
  }
  for (int r = 0; r < kRows; ++r) {
    hn::StoreU(sums[r][0], d32, to + r * to_row);
    hn::StoreU(sums[r][1], d32, to + r * to_row + kLanes);
  }
}

template <int kRows>
HWY_INLINE void rows_of(const PanelProduct& p, int64_t row) {
  constexpr int64_t kWide = 2 * static_cast<int64_t>(hn::MaxLanes(D32()));
  for (int64_t column = 0; column < p.columns; column += kWide) {
    const int64_t columns = std::min(kWide, p.columns - column);
    int32_t* y = p.y + row * p.y_row + column;
    if (columns == kWide) {
      block<kRows>(p, row, column, y, p.y_row);
      continue;
    }
    int32_t tile[kRows * kWide];
    block<kRows>(p, row, column, tile, kWide);
    for (int r = 0; r < kRows; ++r)
      std::memcpy(y + r * p.y_row, tile + r * kWide,
                  static_cast<size_t>(columns) * sizeof(int32_t));
  }
}

void multiply_here(const PanelProduct& p) {
  int64_t row = 0;
  for (; row + 4 <= p.rows; row += 4) rows_of<4>(p, row);
  for (; row < p.rows; ++row) rows_of<1>(p, row);
}
#else
void multiply_here(const PanelProduct& p) {
  for (int64_t i = 0; i < p.rows; ++i)
    for (int64_t j = 0; j < p.columns; ++j) {
      uint32_t sum = 0;
      for (int64_t k = 0; k < p.depth; ++k)
        sum += static_cast<uint32_t>(int32_t{p.a[i * p.depth + k]} * p.panel[panel_place(k, j)]);
      p.y[i * p.y_row + j] = static_cast<int32_t>(sum);
    }
}
#endif

}  // namespace
}  // namespace anymps::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anymps::cpu {

HWY_EXPORT(multiply_here);

void multiply_panel(const PanelProduct& product) {
  isa();
  HWY_DYNAMIC_DISPATCH(multiply_here)(product);
}

}  // namespace anymps::cpu
#endif
