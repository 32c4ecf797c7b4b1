// SPDX-License-Identifier: Apache-2.0
// Sums of products of the parts of 32-bit words: two numbers of 16 bits, or four bytes where the
// processor has VNNI. And how numbers become bytes.

// Included once for each instruction set.
#if defined(ANYMPS_INT_WORDS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef ANYMPS_INT_WORDS_INL_H
#undef ANYMPS_INT_WORDS_INL_H
#else
#define ANYMPS_INT_WORDS_INL_H
#endif

#include <hwy/highway.h>

#include "drivers/cpu/linear/int_gemm.h"

HWY_BEFORE_NAMESPACE();
namespace anymps::cpu {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

struct IntPairs {
  template <typename I32>
  static HWY_INLINE I32 add(I32 sum, I32 a, I32 b) {
    const hn::DFromV<I32> d;
#if HWY_ARCH_X86
    const hn::Repartition<int16_t, decltype(d)> d16;
    I32 unused = hn::Zero(d);
    return hn::ReorderWidenMulAccumulate(d, hn::BitCast(d16, a), hn::BitCast(d16, b), sum, unused);
#else
    const auto low = [](I32 v) HWY_ATTR { return hn::ShiftRight<16>(hn::ShiftLeft<16>(v)); };
    const auto high = [](I32 v) HWY_ATTR { return hn::ShiftRight<16>(v); };
    (void)d;
    return hn::Add(sum, hn::Add(hn::Mul(low(a), low(b)), hn::Mul(high(a), high(b))));
#endif
  }
};

#undef ANYMPS_INT_QUADS
// The instruction is written out, as Highway has none for it and it is no part of what its targets
// are compiled for: a processor has it or not (isa.h), whatever else it has.
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2
#define ANYMPS_INT_QUADS
template <bool signed_a>
struct IntQuads {
  template <typename I32>
  static HWY_INLINE I32 add(I32 sum, I32 a, I32 b) {
    const I32 u = signed_a ? b : a, s = signed_a ? a : b;
#if HWY_TARGET <= HWY_AVX3
    asm("vpdpbusd %2, %1, %0" : "+v"(sum.raw) : "v"(u.raw), "v"(s.raw));
#else
    asm("%{vex%} vpdpbusd %2, %1, %0" : "+x"(sum.raw) : "x"(u.raw), "x"(s.raw));
#endif
    return sum;
  }
};
#endif

// Rounds to even numbers within bounds, and adds a zero point. A number of -2^22 to 2^22 plus
// kRounds is rounded, and is the last bits of what comes out. Not for NaN.
template <class D>
class RoundedBytes {
 public:
  RoundedBytes(const ByteBounds& bounds, float zero)
      : least_(hn::Set(D(), bounds.least)),
        most_(hn::Set(D(), bounds.most)),
        zero_(hn::Sub(hn::BitCast(Words(), hn::Set(D(), kRounds)),
                      hn::Set(Words(), static_cast<int32_t>(zero)))) {}

  HWY_INLINE auto operator()(hn::Vec<D> x) const {
    const auto inside = hn::Min(hn::Max(x, least_), most_);
    return hn::Sub(hn::BitCast(Words(), hn::Add(inside, hn::Set(D(), kRounds))), zero_);
  }

 private:
  using Words = hn::RebindToSigned<D>;
  static constexpr float kRounds = 0x1.8p23f;

  hn::Vec<D> least_, most_;
  hn::Vec<Words> zero_;
};

}  // namespace HWY_NAMESPACE
}  // namespace anymps::cpu
HWY_AFTER_NAMESPACE();

#endif
