// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/layers/depthwise_planes_simd.h"

#include <algorithm>

#define HWY_TARGET_INCLUDE "drivers/cpu/layers/depthwise_planes_simd.cc"
#include "drivers/cpu/all_targets.h"

#include "drivers/cpu/common/parts-inl.h"

HWY_BEFORE_NAMESPACE();
namespace anymps::cpu::HWY_NAMESPACE {
namespace {

// N vectors of a row from column c on; the last may reach beyond the row. What it writes there is
// overwritten by the next rows; only at the end of the plane, `room` elements away, it must not.
template <size_t N>
HWY_INLINE void vectors_of_row(const PlaneWindow& g, const float* x, const float* w, float bias,
                               float* y, int64_t room, int64_t c) {
  const Tag d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  V sums[N];
  for (size_t n = 0; n < N; ++n) sums[n] = hn::Set(d, bias);
  for (int64_t k = 0; k < g.taps; ++k) {
    const V weight = hn::Set(d, w[k]);
    const float* const at = x + g.offsets[k] + c;
    for (size_t n = 0; n < N; ++n)
      sums[n] = hn::MulAdd(hn::LoadU(d, at + static_cast<int64_t>(n) * lanes), weight, sums[n]);
  }
  for (size_t n = 0; n < N; ++n) {
    const int64_t at = c + static_cast<int64_t>(n) * lanes;
    if (at + lanes <= room)
      hn::StoreU(sums[n], d, y + at);
    else
      store_part(sums[n], d, y + at, g.columns - at);
  }
}

constexpr int64_t kTaps = 9;  // that are summed at a time; a shorter rest repeats its last

template <bool kPart>
HWY_INLINE void add_taps(const float* x, const int64_t (&offsets)[kTaps], V gradient,
                         hn::Mask<Tag> part, V (&sums)[kTaps]) {
  const Tag d;
  for (int64_t k = 0; k < kTaps; ++k) {
    const V value = hn::LoadU(d, x + offsets[k]);
    sums[k] = hn::MulAdd(gradient, kPart ? hn::IfThenElseZero(part, value) : value, sums[k]);
  }
}

}  // namespace

void run_plane_here(const PlaneWindow& g, const float* w, float bias, float* y) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(Tag()));
  for (int64_t r = 0; r < g.rows; ++r) {
    const float* const x = g.x + r * g.x_row;
    float* const to = y + r * g.columns;
    const int64_t room = (g.rows - r) * g.columns;
    int64_t c = 0;
    for (; c + 3 * lanes < g.columns; c += 4 * lanes) vectors_of_row<4>(g, x, w, bias, to, room, c);
    for (; c < g.columns; c += lanes) vectors_of_row<1>(g, x, w, bias, to, room, c);
  }
}

void run_plane_taps_here(const PlaneWindow& g, const float* dy, double* sums) {
  const Tag d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t first = 0; first < g.taps; first += kTaps) {
    int64_t offsets[kTaps];
    for (int64_t k = 0; k < kTaps; ++k) offsets[k] = g.offsets[std::min(first + k, g.taps - 1)];
    V all[kTaps];
    for (V& sum : all) sum = hn::Zero(d);
    const int64_t whole = g.columns / lanes * lanes, rest = g.columns - whole;
    const auto mask = hn::FirstN(d, rest);
    for (int64_t r = 0; r < g.rows; ++r) {
      const float *const from = dy + r * g.columns, *const x = g.x + r * g.x_row;
      for (int64_t c = 0; c < whole; c += lanes)
        add_taps<false>(x + c, offsets, hn::LoadU(d, from + c), mask, all);
      if (rest == 0) continue;
      // Zeros on both sides: beyond the row there may be infinities.
      const bool inside = r * g.columns + whole + lanes <= g.rows * g.columns;
      const V gradient = inside ? hn::LoadU(d, from + whole) : load_part(d, from + whole, rest);
      add_taps<true>(x + whole, offsets, hn::IfThenElseZero(mask, gradient), mask, all);
    }
    for (int64_t k = 0; k < std::min(kTaps, g.taps - first); ++k)
      sums[first + k] += static_cast<double>(hn::GetLane(hn::SumOfLanes(d, all[k])));
  }
}

}  // namespace anymps::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anymps::cpu {

HWY_EXPORT(run_plane_here);
HWY_EXPORT(run_plane_taps_here);

void run_plane(const PlaneWindow& window, const float* w, float bias, float* y) {
  HWY_DYNAMIC_DISPATCH(run_plane_here)(window, w, bias, y);
}

void run_plane_taps(const PlaneWindow& window, const float* dy, double* sums) {
  HWY_DYNAMIC_DISPATCH(run_plane_taps_here)(window, dy, sums);
}

}  // namespace anymps::cpu
#endif
