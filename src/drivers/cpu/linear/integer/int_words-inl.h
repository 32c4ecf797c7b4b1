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

#include <cstdint>

#include "drivers/cpu/common/bytes-inl.h"
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

// What numbers become as bytes: rounded to even ones, with a zero point, within bounds. Not for NaN
// and for what does not fit 32 bits (fits_words).
template <class D>
class RoundedBytes {
 public:
  using Bytes = hn::Repartition<uint8_t, D>;

  explicit RoundedBytes(const IntTail& tail) {
    // i8 are u8 until the end.
    const float moved = tail.zero + (tail.out == DType::kI8 ? 128.0f : 0.0f);
    const ByteBounds bounds = byte_bounds(tail);
    zero_ = hn::Set(Shorts(), static_cast<int16_t>(moved));
    least_ = hn::Set(Bytes(), static_cast<uint8_t>(bounds.least + moved));
    most_ = hn::Set(Bytes(), static_cast<uint8_t>(bounds.most + moved));
    flip_ = hn::Set(Bytes(), tail.out == DType::kI8 ? 128 : 0);
  }

  // Each block of 16 bytes has four of each vector, one vector after the other.
  HWY_INLINE hn::Vec<Bytes> operator()(hn::Vec<D> a, hn::Vec<D> b, hn::Vec<D> c,
                                       hn::Vec<D> e) const {
    return bytes(shorts(a, b), shorts(c, e));
  }
  // The same with only two vectors, then again both.
  HWY_INLINE hn::Vec<Bytes> operator()(hn::Vec<D> a, hn::Vec<D> b) const {
    const auto both = shorts(a, b);
    return bytes(both, both);
  }

 private:
  using Shorts = hn::Repartition<int16_t, D>;

  // What is out of range stays so.
  HWY_INLINE hn::Vec<Shorts> shorts(hn::Vec<D> a, hn::Vec<D> b) const {
    return hn::SaturatedAdd(narrowed(Shorts(), nearest(D(), a), nearest(D(), b)), zero_);
  }
  HWY_INLINE hn::Vec<Bytes> bytes(hn::Vec<Shorts> a, hn::Vec<Shorts> b) const {
    const auto inside = hn::Min(hn::Max(narrowed_bytes(Bytes(), a, b), least_), most_);
    return hn::Xor(inside, flip_);
  }

  hn::Vec<Shorts> zero_;
  hn::Vec<Bytes> least_, most_, flip_;
};

}  // namespace HWY_NAMESPACE
}  // namespace anymps::cpu
HWY_AFTER_NAMESPACE();

#endif
