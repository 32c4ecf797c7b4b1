// SPDX-License-Identifier: Apache-2.0
// Numbers narrowed to bytes, four vectors at a time: the instructions for that work in blocks of 16
// bytes, and what comes out has four bytes of each vector in each block.

// Included once for each instruction set.
#if defined(ANYMPS_BYTES_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef ANYMPS_BYTES_INL_H
#undef ANYMPS_BYTES_INL_H
#else
#define ANYMPS_BYTES_INL_H
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace anymps::cpu {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// rint of numbers that fit 32 bits; hn::NearestInt looks for those that do not.
template <class D>
HWY_INLINE hn::Vec<hn::RebindToSigned<D>> nearest(D, hn::Vec<D> x) {
  using Words = hn::Vec<hn::RebindToSigned<D>>;
#if !HWY_ARCH_X86
  return hn::NearestInt(x);
#else
  if constexpr (sizeof(x.raw) == 16) return Words{_mm_cvtps_epi32(x.raw)};
#if HWY_TARGET <= HWY_AVX2
  else if constexpr (sizeof(x.raw) == 32)
    return Words{_mm256_cvtps_epi32(x.raw)};
#endif
#if HWY_TARGET <= HWY_AVX3
  else if constexpr (sizeof(x.raw) == 64)
    return Words{_mm512_cvtps_epi32(x.raw)};
#endif
#endif
}

// The numbers of `a` and `b` narrowed, within the range of what they become: of each block of 16
// bytes those of a, then those of b.
template <class D16>
HWY_INLINE hn::Vec<D16> narrowed(D16 d, hn::Vec<hn::Repartition<int32_t, D16>> a,
                                 hn::Vec<hn::Repartition<int32_t, D16>> b) {
#if HWY_ARCH_X86
  return hn::ReorderDemote2To(d, a, b);
#else
  const hn::Half<D16> half;  // of vectors of one block
  return hn::Combine(d, hn::DemoteTo(half, b), hn::DemoteTo(half, a));
#endif
}
template <class D8>
HWY_INLINE hn::Vec<D8> narrowed_bytes(D8 d, hn::Vec<hn::Repartition<int16_t, D8>> a,
                                      hn::Vec<hn::Repartition<int16_t, D8>> b) {
#if !HWY_ARCH_X86
  const hn::Half<D8> half;
  return hn::Combine(d, hn::DemoteTo(half, b), hn::DemoteTo(half, a));
#else
  (void)d;
  if constexpr (sizeof(a.raw) == 16) return hn::Vec<D8>{_mm_packus_epi16(a.raw, b.raw)};
#if HWY_TARGET <= HWY_AVX2
  else if constexpr (sizeof(a.raw) == 32)
    return hn::Vec<D8>{_mm256_packus_epi16(a.raw, b.raw)};
#endif
#if HWY_TARGET <= HWY_AVX3
  else if constexpr (sizeof(a.raw) == 64)
    return hn::Vec<D8>{_mm512_packus_epi16(a.raw, b.raw)};
#endif
#endif
}

// Brings bytes of `vectors` vectors, as narrowed, into the vectors' order.
template <class D8>
class BlocksInOrder {
 public:
  explicit BlocksInOrder(size_t vectors) {
    constexpr size_t kWords = hn::MaxLanes(Words()), kBlocks = kWords / 4;
    alignas(64) int32_t order[kWords] = {};
    for (size_t i = 0; i < std::min(kWords, vectors * kBlocks); ++i)
      order[i] = static_cast<int32_t>(i % kBlocks * 4 + i / kBlocks);
    order_ = hn::IndicesFromVec(Words(), hn::Load(Words(), order));
  }

  HWY_INLINE hn::Vec<D8> operator()(hn::Vec<D8> bytes) const {
    return hn::BitCast(D8(), hn::TableLookupLanes(hn::BitCast(Words(), bytes), order_));
  }

 private:
  using Words = hn::Repartition<int32_t, D8>;
  decltype(hn::IndicesFromVec(Words(), hn::Zero(Words()))) order_;
};

}  // namespace HWY_NAMESPACE
}  // namespace anymps::cpu
HWY_AFTER_NAMESPACE();

#endif
