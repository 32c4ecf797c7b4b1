// SPDX-License-Identifier: Apache-2.0
// Panels of matrices: rows of lanes out of lanes that are dense along their depth. Four elements of
// each lane are loaded at once; in blocks of four lanes they are transposed, and a vector's blocks
// side by side.
#include <hwy/cache_control.h>

#include <algorithm>

#include "drivers/cpu/linear/packing/panel_packing.h"

#define HWY_TARGET_INCLUDE "drivers/cpu/linear/packing/panel_packing_simd.cc"
#include "drivers/cpu/all_targets.h"

HWY_BEFORE_NAMESPACE();
namespace anymps::cpu::HWY_NAMESPACE {

namespace {

constexpr int64_t kQuad = 4;
constexpr int64_t kColumns = 64;  // of a tile: with a panel's lanes it fits the L1 cache
constexpr int64_t kLine = 16;     // floats of a cache line

// Four elements from each of kLanes / 4 lanes.
template <size_t kLanes>
HWY_INLINE hn::Vec<hn::FixedTag<float, kLanes>> quads(const float* from, int64_t stride) {
  const hn::FixedTag<float, kLanes> d;
  if constexpr (kLanes == kQuad) {
    return hn::LoadU(d, from);
  } else {
    constexpr size_t kHalf = kLanes / 2;
    return hn::Combine(d, quads<kHalf>(from + static_cast<int64_t>(kHalf / kQuad) * stride, stride),
                       quads<kHalf>(from, stride));
  }
}

// Of lanes, rounded once.
template <size_t kLanes>
class Factors {
 public:
  using Wide = hn::FixedTag<double, kLanes / 2>;
  explicit Factors(const double* factors)
      : any_(factors != nullptr),
        low_(any_ ? hn::LoadU(Wide(), factors) : hn::Zero(Wide())),
        high_(any_ ? hn::LoadU(Wide(), factors + kLanes / 2) : hn::Zero(Wide())) {}

  template <typename X>
  HWY_INLINE X times(X x) const {
    if (!any_) return x;
    const hn::FixedTag<float, kLanes> d;
    const hn::FixedTag<float, kLanes / 2> half;
    const auto low = hn::Mul(hn::PromoteTo(Wide(), hn::LowerHalf(half, x)), low_);
    const auto high = hn::Mul(hn::PromoteTo(Wide(), hn::UpperHalf(half, x)), high_);
    return hn::Combine(d, hn::DemoteTo(half, high), hn::DemoteTo(half, low));
  }

 private:
  bool any_;
  hn::Vec<Wide> low_, high_;
};

inline float times(float x, const double* factor) {
  return factor ? static_cast<float>(static_cast<double>(x) * *factor) : x;
}

// Columns [begin, end) of kLanes lanes.
template <size_t kLanes>
HWY_INLINE void transpose_lanes(const PlainPanel& plain, int64_t lane, int64_t begin, int64_t end,
                                int64_t block, float* packed) {
  const hn::FixedTag<float, kLanes> d;
  const hn::RepartitionToWide<decltype(d)> pairs;
  const int64_t stride = plain.lane_stride;
  const float* const from = plain.from + lane * stride;
  const Factors<kLanes> factors(plain.factors_from(lane));
  float* to = packed + begin * block + lane;
  const auto put = [&](auto low, auto high, float* first, float* second) {
    const auto a = hn::BitCast(pairs, low), b = hn::BitCast(pairs, high);
    hn::StoreU(factors.times(hn::BitCast(d, hn::InterleaveLower(pairs, a, b))), d, first);
    hn::StoreU(factors.times(hn::BitCast(d, hn::InterleaveUpper(pairs, a, b))), d, second);
  };
  int64_t p = begin;
  for (; p + kQuad <= end; p += kQuad, to += kQuad * block) {
    if (p % kLine == 0 &&
        p + kColumns < plain.depth)  // lanes are far apart: no one else asks in time
      for (int64_t k = 0; k < static_cast<int64_t>(kLanes); ++k)
        hwy::Prefetch(from + p + kColumns + k * stride);
    // x[k] has lane 4 i + k in its block i.
    const auto x0 = quads<kLanes>(from + p, kQuad * stride);
    const auto x1 = quads<kLanes>(from + p + stride, kQuad * stride);
    const auto x2 = quads<kLanes>(from + p + 2 * stride, kQuad * stride);
    const auto x3 = quads<kLanes>(from + p + 3 * stride, kQuad * stride);
    put(hn::InterleaveLower(d, x0, x1), hn::InterleaveLower(d, x2, x3), to, to + block);
    put(hn::InterleaveUpper(d, x0, x1), hn::InterleaveUpper(d, x2, x3), to + 2 * block,
        to + 3 * block);
  }
  for (; p < end; ++p, to += block)
    for (int64_t k = 0; k < static_cast<int64_t>(kLanes); ++k)
      to[k] = times(from[p + k * stride], plain.factors_from(lane + k));
}

// Columns [begin, end) from `lane` on, in steps of kLanes; returns the lane behind them.
template <size_t kLanes>
HWY_INLINE int64_t transpose_steps(const PlainPanel& plain, int64_t lane, int64_t begin,
                                   int64_t end, int64_t block, float* packed) {
  if constexpr (kLanes <= hn::MaxLanes(Tag()))
    for (constexpr auto kStep = static_cast<int64_t>(kLanes); lane + kStep <= plain.lanes;
         lane += kStep)
      transpose_lanes<kLanes>(plain, lane, begin, end, block, packed);
  return lane;
}

void pack_dense_depth(const PlainPanel& plain, int64_t block, float* packed) {
  const int64_t stride = plain.lane_stride;
  for (int64_t begin = 0; begin < plain.depth; begin += kColumns) {
    const int64_t end = std::min(plain.depth, begin + kColumns);
    int64_t lane = transpose_steps<16>(plain, 0, begin, end, block, packed);
    lane = transpose_steps<8>(plain, lane, begin, end, block, packed);
    lane = transpose_steps<4>(plain, lane, begin, end, block, packed);
    for (int64_t p = begin; p < end; ++p) {
      for (int64_t rest = lane; rest < plain.lanes; ++rest)
        packed[p * block + rest] = times(plain.from[rest * stride + p], plain.factors_from(rest));
      std::fill(packed + p * block + plain.lanes, packed + (p + 1) * block, 0.0f);
    }
  }
}

void pack_any(const PlainPanel& plain, int64_t block, float* packed) {
  for (int64_t p = 0; p < plain.depth; ++p, packed += block) {
    const float* const from = plain.from + p * plain.depth_stride;
    if (plain.lane_stride == 1 && !plain.factors)
      std::copy_n(from, plain.lanes, packed);
    else
      for (int64_t lane = 0; lane < plain.lanes; ++lane)
        packed[lane] = times(from[lane * plain.lane_stride], plain.factors_from(lane));
    std::fill(packed + plain.lanes, packed + block, 0.0f);
  }
}

}  // namespace

void pack_panel_here(const PlainPanel& plain, int64_t block, float* packed) {
  (plain.depth_stride == 1 ? pack_dense_depth : pack_any)(plain, block, packed);
}

}  // namespace anymps::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anymps::cpu {

HWY_EXPORT(pack_panel_here);

void pack_panel(const PlainPanel& plain, int64_t block, float* packed) {
  HWY_DYNAMIC_DISPATCH(pack_panel_here)(plain, block, packed);
}

}  // namespace anymps::cpu
#endif
