// SPDX-License-Identifier: Apache-2.0
// Numbers in steps of one scale, as bytes: rint(x / scale) + zero, within the type's range; NaN is
// 0. Division takes as long as all the rest, so the quotient is first a product, whose error tells
// only next to a half; where a lane is that close, its vector is divided.

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

HWY_BEFORE_NAMESPACE();
namespace anymps::cpu {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

template <typename T>
class ByteSteps {
 public:
  ByteSteps(float scale, float zero)
      : scale_(scale), zero_(zero), inverse_(1 / scale), exact_(!std::isnormal(inverse_)) {}

  // `count` numbers to bytes.
  void run(const float* from, size_t count, T* to) const {
    const D d;
    const hn::Rebind<T, D> dt;
    const size_t lanes = hn::Lanes(d);
    size_t i = 0;
    for (; i + lanes <= count; i += lanes)
      hn::StoreU(hn::DemoteTo(dt, whole(hn::LoadU(d, from + i))), dt, to + i);
    for (; i < count; ++i) {
      const float y = std::nearbyint(from[i] / scale_) + zero_;
      to[i] = std::isnan(y) ? T(0) : static_cast<T>(std::clamp(y, kLeast, kMost));
    }
  }

 private:
  using D = hn::ScalableTag<float>;
  using Vector = hn::Vec<D>;
  static constexpr float kLeast = std::numeric_limits<T>::lowest(),
                         kMost = std::numeric_limits<T>::max();
  // Beyond this every result is at the end of the range; the product's error is below 2^-22 of it.
  static constexpr float kFar = 1024, kClose = 0x1p-11f;

  HWY_INLINE hn::Vec<hn::ScalableTag<int32_t>> whole(Vector x) const {
    const D d;
    const Vector far = hn::Set(d, kFar);
    Vector product = hn::Mul(x, hn::Set(d, inverse_));
    product = hn::Min(hn::Max(product, hn::Neg(far)), far);
    Vector rounded = hn::Round(product);
    const Vector from_half = hn::Sub(hn::Abs(hn::Sub(product, rounded)), hn::Set(d, 0.5f));
    // NaN is not certain either.
    const auto certain = hn::And(hn::Lt(from_half, hn::Set(d, -kClose)), hn::Eq(x, x));
    if (HWY_UNLIKELY(exact_ || !hn::AllTrue(d, certain)))
      rounded = hn::Round(hn::Div(x, hn::Set(d, scale_)));
    const Vector y = hn::Add(rounded, hn::Set(d, zero_));
    const Vector inside = hn::Min(hn::Max(y, hn::Set(d, kLeast)), hn::Set(d, kMost));
    return hn::ConvertTo(hn::ScalableTag<int32_t>(), hn::IfThenElseZero(hn::Eq(y, y), inside));
  }

  const float scale_, zero_, inverse_;
  const bool exact_;
};

}  // namespace HWY_NAMESPACE
}  // namespace anymps::cpu
HWY_AFTER_NAMESPACE();

#endif
