// SPDX-License-Identifier: Apache-2.0
// Numbers in steps of one scale, as bytes: rint(x / scale) + zero, within the type's range; NaN is
// 0. Division takes as long as all the rest, so the quotient is first a product, whose error tells
// only next to a half; where a lane is that close, or far out of the range, its vectors are
// divided.

// Included once for each instruction set.
#if defined(ANYMPS_STEPS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef ANYMPS_STEPS_INL_H
#undef ANYMPS_STEPS_INL_H
#else
#define ANYMPS_STEPS_INL_H
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "drivers/cpu/common/bytes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace anymps::cpu {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

template <typename T>
class ByteSteps {
 public:
  using D = hn::ScalableTag<float>;
  using Bytes = hn::Repartition<uint8_t, D>;
  using Vector = hn::Vec<D>;

  ByteSteps(float scale, float zero)
      : scale_(scale),
        zero_(zero),
        inverse_(1 / scale),
        divides_(!std::isnormal(inverse_) || zero != std::nearbyint(zero) || std::abs(zero) > 255) {
  }

  // `count` numbers to bytes.
  void run(const float* from, size_t count, T* to) const {
    const D d;
    const Bytes bytes;
    const BlocksInOrder<Bytes> in_order(4);
    const size_t lanes = hn::Lanes(d);
    size_t i = 0;
    for (; i + 4 * lanes <= count; i += 4 * lanes) {
      const auto at = [&](size_t k) HWY_ATTR { return hn::LoadU(d, from + i + k * lanes); };
      hn::StoreU(in_order(in_blocks(at(0), at(1), at(2), at(3))), bytes,
                 reinterpret_cast<uint8_t*>(to + i));
    }
    for (; i < count; ++i) to[i] = one(from[i]);
  }

  T one(float x) const {
    const float y = std::nearbyint(x / scale_) + zero_;
    return std::isnan(y) ? T(0) : static_cast<T>(std::clamp(y, kLeast, kMost));
  }

  // Of four vectors, as narrowed_bytes has them.
  HWY_INLINE hn::Vec<Bytes> in_blocks(Vector a, Vector b, Vector c, Vector e) const {
    auto farthest = hn::Zero(Words());
    const auto a_step = product(a, farthest), b_step = product(b, farthest),
               c_step = product(c, farthest), e_step = product(e, farthest);
    const auto close = hn::BitCast(Words(), hn::Set(D(), 0.5f - kClose));
    if (HWY_UNLIKELY(divides_ || !hn::AllTrue(Words(), hn::Lt(farthest, close))))
      return narrow(quotient(a), quotient(b), quotient(c), quotient(e));
    const Shorts shorts;
    const auto zero = hn::Set(shorts, static_cast<int16_t>(zero_ + kMoved));
    const auto low = hn::SaturatedAdd(narrowed(shorts, a_step, b_step), zero);
    const auto high = hn::SaturatedAdd(narrowed(shorts, c_step, e_step), zero);
    return hn::Xor(narrowed_bytes(Bytes(), low, high), hn::Set(Bytes(), kMoved));
  }

 private:
  using Shorts = hn::Repartition<int16_t, D>;
  using Words = hn::Repartition<int32_t, D>;
  static constexpr float kLeast = std::numeric_limits<T>::lowest(),
                         kMost = std::numeric_limits<T>::max();
  static constexpr int16_t kMoved = std::is_signed_v<T> ? 128 : 0;  // i8 are u8 until the end
  // A product is off by less than 2^-22 of it, and beyond 1024 every result is at the end of the
  // range.
  static constexpr float kClose = 0x1p-12f;

  // The nearest whole number to a product, and how far it is from the product, if that is more: as
  // its bits, of which those of NaN are the largest. What is too large is far, too.
  HWY_INLINE hn::Vec<Words> product(Vector x, hn::Vec<Words>& farthest) const {
    const D d;
    const Vector product = hn::Mul(x, hn::Set(d, inverse_));
    const auto whole = nearest(d, product);
    const Vector distance = hn::Abs(hn::Sub(product, hn::ConvertTo(d, whole)));
    farthest = hn::Max(farthest, hn::BitCast(Words(), distance));
    return whole;
  }

  // Within the range; NaN is 0.
  HWY_INLINE hn::Vec<Words> quotient(Vector x) const {
    const D d;
    const Vector y = hn::Add(hn::Round(hn::Div(x, hn::Set(d, scale_))), hn::Set(d, zero_));
    const Vector inside = hn::Min(hn::Max(y, hn::Set(d, kLeast)), hn::Set(d, kMost));
    return hn::ConvertTo(Words(), hn::IfThenElseZero(hn::Eq(y, y), inside));
  }

  static HWY_INLINE hn::Vec<Bytes> narrow(hn::Vec<Words> a, hn::Vec<Words> b, hn::Vec<Words> c,
                                          hn::Vec<Words> e) {
    const Shorts shorts;
    const auto moved = hn::Set(shorts, kMoved);
    const auto low = hn::Add(narrowed(shorts, a, b), moved);
    const auto high = hn::Add(narrowed(shorts, c, e), moved);
    return hn::Xor(narrowed_bytes(Bytes(), low, high), hn::Set(Bytes(), kMoved));
  }

  const float scale_, zero_, inverse_;
  const bool divides_;
};

}  // namespace HWY_NAMESPACE
}  // namespace anymps::cpu
HWY_AFTER_NAMESPACE();

#endif
