// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/movement/gather_simd.h"

#include "drivers/cpu/isa.h"

#define HWY_TARGET_INCLUDE "drivers/cpu/movement/gather_simd.cc"
#include "drivers/cpu/all_targets.h"

HWY_BEFORE_NAMESPACE();
namespace anymps::cpu::HWY_NAMESPACE {
namespace {

bool pick_words_here(const int32_t* x, const int64_t* indices, int64_t n, int64_t extent,
                     int64_t stride, int64_t step, int32_t* y) {
  const hn::ScalableTag<int32_t> d;
  const hn::Repartition<int64_t, decltype(d)> dl;
  constexpr auto kLanes = static_cast<int64_t>(hn::MaxLanes(hn::ScalableTag<int32_t>()));
  const auto last = hn::Set(dl, extent - 1), all = hn::Set(dl, extent);
  auto wrong = hn::Zero(dl);
  const auto places = [&](int64_t i) HWY_ATTR {
    const auto index = hn::LoadU(dl, indices + i);
    const auto from_end = hn::IfThenElseZero(hn::Lt(index, hn::Zero(dl)), all);
    const auto place = hn::Add(index, from_end);
    const auto bad = hn::Or(hn::Lt(place, hn::Zero(dl)), hn::Gt(place, last));
    wrong = hn::Or(wrong, hn::VecFromMask(dl, bad));
    return hn::BitCast(d, hn::IfThenZeroElse(bad, place));
  };
  const auto by = hn::Set(d, static_cast<int32_t>(stride));
  const auto steps = hn::Mul(hn::Iota(d, 0), hn::Set(d, static_cast<int32_t>(step)));
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const auto low = places(i), high = places(i + kLanes / 2);
    const auto at = hn::Add(hn::Mul(hn::ConcatEven(d, high, low), by), steps);
    hn::StoreU(hn::GatherIndex(d, x + i * step, at), d, y + i);
  }
  bool right = hn::AllTrue(dl, hn::Eq(wrong, hn::Zero(dl)));
  for (; i < n; ++i) {
    const int64_t place = indices[i] + (indices[i] < 0 ? extent : 0);
    const bool bad = place < 0 || place >= extent;
    right = right && !bad;
    y[i] = x[(bad ? 0 : place) * stride + i * step];
  }
  return right;
}

}  // namespace
}  // namespace anymps::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anymps::cpu {

HWY_EXPORT(pick_words_here);

bool pick_words(const int32_t* x, const int64_t* indices, int64_t n, int64_t extent, int64_t stride,
                int64_t step, int32_t* y) {
  isa();
  return HWY_DYNAMIC_DISPATCH(pick_words_here)(x, indices, n, extent, stride, step, y);
}

}  // namespace anymps::cpu
#endif
