// SPDX-License-Identifier: Apache-2.0
// Compiled once for each instruction set.
#include "drivers/cpu/linear/integer/int_taps.h"

#include "drivers/cpu/isa.h"

#define HWY_TARGET_INCLUDE "drivers/cpu/linear/integer/int_taps.cc"
#include "drivers/cpu/all_targets.h"

HWY_BEFORE_NAMESPACE();
namespace anymps::cpu::HWY_NAMESPACE {
namespace {

template <typename T>
HWY_INLINE void sum_taps_of(const IntTaps& taps, uint8_t flip, int32_t* sums) {
  const hn::ScalableTag<int32_t> d;
  const hn::Rebind<T, decltype(d)> d8;
  const hn::Rebind<uint8_t, decltype(d)> bytes;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto bits = hn::Set(bytes, flip);
  for (int64_t j = 0; j < taps.columns; j += lanes) {
    auto sum = hn::Zero(d);
    for (int64_t k = 0; k < taps.count; ++k) {
      const auto x = hn::Xor(hn::LoadU(bytes, taps.from + taps.offsets[k] + j), bits);
      sum =
          hn::Add(sum, hn::Mul(hn::PromoteTo(d, hn::BitCast(d8, x)), hn::Set(d, taps.weights[k])));
    }
    hn::StoreU(sum, d, sums + j);
  }
}

void sum_taps_here(const IntTaps& taps, int32_t* sums) {
  if (taps.dtype == DType::kI8)
    sum_taps_of<int8_t>(taps, 0, sums);
  else
    sum_taps_of<uint8_t>(taps, taps.flip ? 128 : 0, sums);
}

}  // namespace
}  // namespace anymps::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anymps::cpu {

HWY_EXPORT(sum_taps_here);

void sum_taps(const IntTaps& taps, int32_t* sums) {
  isa();
  HWY_DYNAMIC_DISPATCH(sum_taps_here)(taps, sums);
}

}  // namespace anymps::cpu
#endif
