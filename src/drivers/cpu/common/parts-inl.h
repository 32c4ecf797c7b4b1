// SPDX-License-Identifier: Apache-2.0
// The end of a row of floats that does not fill a vector: by masks where the instruction set has
// them that touch no other memory, else by way of memory that a vector fits in.

// Included once for each instruction set.
#if defined(ANYMPS_PARTS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef ANYMPS_PARTS_INL_H
#undef ANYMPS_PARTS_INL_H
#else
#define ANYMPS_PARTS_INL_H
#endif

#include <hwy/highway.h>

#include <cstring>

HWY_BEFORE_NAMESPACE();
namespace anymps::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// n floats; the lanes after them hold `rest`.
template <class D>
HWY_INLINE hn::Vec<D> load_part(D d, const float* from, size_t n, float rest = 0) {
#if HWY_TARGET <= HWY_AVX2
  const auto part = hn::FirstN(d, n);
  return hn::IfThenElse(part, hn::MaskedLoad(part, d, from), hn::Set(d, rest));
#else
  alignas(64) float buffer[hn::MaxLanes(D())];
  hn::Store(hn::Set(d, rest), d, buffer);
  std::memcpy(buffer, from, n * sizeof(float));
  return hn::Load(d, buffer);
#endif
}

template <class D>
HWY_INLINE void store_part(hn::Vec<D> v, D d, float* to, size_t n) {
#if HWY_TARGET <= HWY_AVX2
  hn::BlendedStore(v, hn::FirstN(d, n), d, to);
#else
  alignas(64) float buffer[hn::MaxLanes(D())];
  hn::Store(v, d, buffer);
  std::memcpy(to, buffer, n * sizeof(float));
#endif
}

}  // namespace anymps::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // ANYMPS_PARTS_INL_H
