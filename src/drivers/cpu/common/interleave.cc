// SPDX-License-Identifier: Apache-2.0
// Compiled once for each instruction set.
#include "drivers/cpu/common/interleave.h"

#include "drivers/cpu/isa.h"

#define HWY_TARGET_INCLUDE "drivers/cpu/common/interleave.cc"
#include "drivers/cpu/all_targets.h"

HWY_BEFORE_NAMESPACE();
namespace anymps::cpu::HWY_NAMESPACE {
namespace {

template <int64_t planes>
void interleave(const uint8_t* from, int64_t plane, int64_t count, uint8_t* to) {
  const hn::CappedTag<uint8_t, 32> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto at = [&](int64_t p, int64_t i) HWY_ATTR { return hn::LoadU(d, from + p * plane + i); };
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    uint8_t* y = to + i * planes;
    if constexpr (planes == 2)
      hn::StoreInterleaved2(at(0, i), at(1, i), d, y);
    else if constexpr (planes == 3)
      hn::StoreInterleaved3(at(0, i), at(1, i), at(2, i), d, y);
    else
      hn::StoreInterleaved4(at(0, i), at(1, i), at(2, i), at(3, i), d, y);
  }
  for (; i < count; ++i)
    for (int64_t p = 0; p < planes; ++p) to[i * planes + p] = from[p * plane + i];
}

void interleave_here(const uint8_t* from, int64_t plane, int64_t planes, int64_t count,
                     uint8_t* to) {
  if (planes == 2) return interleave<2>(from, plane, count, to);
  if (planes == 3) return interleave<3>(from, plane, count, to);
  interleave<4>(from, plane, count, to);
}

}  // namespace
}  // namespace anymps::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anymps::cpu {

HWY_EXPORT(interleave_here);

void interleave_bytes(const uint8_t* from, int64_t plane, int64_t planes, int64_t count,
                      uint8_t* to) {
  isa();
  HWY_DYNAMIC_DISPATCH(interleave_here)(from, plane, planes, count, to);
}

}  // namespace anymps::cpu
#endif
