// SPDX-License-Identifier: Apache-2.0
// Numbers stay as they lie, real and imaginary parts side by side: sums need nothing else, and a
// product with a factor that all share is two products, one with the parts exchanged.
#include "drivers/cpu/signal/fft_simd.h"

#define HWY_TARGET_INCLUDE "drivers/cpu/signal/fft_simd.cc"
#include "drivers/cpu/all_targets.h"

HWY_BEFORE_NAMESPACE();
namespace anymps::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

namespace {

// A factor that is the same for all numbers of a vector.
template <class D>
struct Factor {
  using T = hn::TFromD<D>;
  using V = hn::Vec<D>;
  V re, im;

  HWY_INLINE Factor(D d, const Cx<T>& w)
      : re(hn::Set(d, w.re)), im(hn::OddEven(hn::Set(d, w.im), hn::Set(d, -w.im))) {}
  HWY_INLINE V times(D d, V x) const { return hn::MulAdd(x, re, hn::Mul(hn::Reverse2(d, x), im)); }
};

template <typename T>
HWY_INLINE const T* parts(const Cx<T>* numbers) {
  return &numbers->re;
}
template <typename T>
HWY_INLINE T* parts(Cx<T>* numbers) {
  return &numbers->re;
}

// The vectors of one butterfly that begin at scalar i < end; returns where the next begin.
template <class D, typename T = hn::TFromD<D>>
HWY_INLINE int64_t two(D d, const FftStage<T>& s, const Cx<T>* a, Cx<T>* b, const Cx<T>& w,
                       int64_t i, int64_t end) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const Factor<D> factor(d, w);
  const T *a0 = parts(a), *a1 = parts(a + s.step);
  T *b0 = parts(b), *b1 = parts(b + s.width);
  for (; i + lanes <= end; i += lanes) {
    const auto x = hn::LoadU(d, a0 + i), y = hn::LoadU(d, a1 + i);
    hn::StoreU(hn::Add(x, y), d, b0 + i);
    hn::StoreU(factor.times(d, hn::Sub(x, y)), d, b1 + i);
  }
  return i;
}

template <class D, typename T = hn::TFromD<D>>
HWY_INLINE int64_t four(D d, const FftStage<T>& s, const Cx<T>* a, Cx<T>* b, int64_t q, int64_t i,
                        int64_t end) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const Factor<D> w1(d, s.turns[q * s.turn]), w2(d, s.turns[2 * q * s.turn]),
      w3(d, s.turns[3 * q * s.turn]);
  const T quarter = s.turns[s.n / 4].im < 0 ? T{1} : T{-1};
  const auto sign = hn::OddEven(hn::Set(d, -quarter), hn::Set(d, quarter));
  const T *a0 = parts(a), *a1 = parts(a + s.step), *a2 = parts(a + 2 * s.step),
          *a3 = parts(a + 3 * s.step);
  T *b0 = parts(b), *b1 = parts(b + s.width), *b2 = parts(b + 2 * s.width),
    *b3 = parts(b + 3 * s.width);
  for (; i + lanes <= end; i += lanes) {
    const auto x0 = hn::LoadU(d, a0 + i), x1 = hn::LoadU(d, a1 + i), x2 = hn::LoadU(d, a2 + i),
               x3 = hn::LoadU(d, a3 + i);
    const auto even = hn::Add(x0, x2), odd = hn::Add(x1, x3), even2 = hn::Sub(x0, x2);
    const auto turned = hn::Mul(hn::Reverse2(d, hn::Sub(x1, x3)), sign);
    hn::StoreU(hn::Add(even, odd), d, b0 + i);
    hn::StoreU(w1.times(d, hn::Add(even2, turned)), d, b1 + i);
    hn::StoreU(w2.times(d, hn::Sub(even, odd)), d, b2 + i);
    hn::StoreU(w3.times(d, hn::Sub(even2, turned)), d, b3 + i);
  }
  return i;
}

// Elements r and p - r have conjugate factors, so their sum and difference are taken first.
template <class D, typename T = hn::TFromD<D>>
HWY_INLINE int64_t many(D d, const FftStage<T>& s, const Cx<T>* a, Cx<T>* b, int64_t q, int64_t i,
                        int64_t end) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t p = s.p, half = p / 2;
  const auto sign = hn::OddEven(hn::Set(d, T{1}), hn::Set(d, T{-1}));
  for (; i + lanes <= end; i += lanes) {
    hn::Vec<D> sums[kLargestFactor / 2 + 1], parts_of[kLargestFactor / 2 + 1];
    const auto first = hn::LoadU(d, parts(a) + i);
    auto all = first;
    for (int64_t r = 1; r <= half; ++r) {
      const auto x = hn::LoadU(d, parts(a + r * s.step) + i),
                 y = hn::LoadU(d, parts(a + (p - r) * s.step) + i);
      sums[r] = hn::Add(x, y);
      parts_of[r] = hn::Mul(hn::Reverse2(d, hn::Sub(x, y)), sign);
      all = hn::Add(all, sums[r]);
    }
    hn::StoreU(all, d, parts(b) + i);
    for (int64_t j = 1; j <= half; ++j) {
      auto even = first, odd = hn::Zero(d);
      for (int64_t r = 1; r <= half; ++r) {
        const Cx<T>& w = s.turns[r * j % p * (s.n / p)];
        even = hn::MulAdd(hn::Set(d, w.re), sums[r], even);
        odd = hn::MulAdd(hn::Set(d, w.im), parts_of[r], odd);
      }
      const Factor<D> one(d, s.turns[q * j * s.turn]), two(d, s.turns[q * (p - j) * s.turn]);
      hn::StoreU(one.times(d, hn::Add(even, odd)), d, parts(b + j * s.width) + i);
      hn::StoreU(two.times(d, hn::Sub(even, odd)), d, parts(b + (p - j) * s.width) + i);
    }
  }
  return i;
}

// Whole vectors, then one number at a time.
template <typename T>
HWY_INLINE void stage(const FftStage<T>& s) {
  const hn::ScalableTag<T> d;
  const hn::FixedTag<T, 2> one;
  const int64_t end = 2 * s.width;
  for (int64_t q = 0; q < s.m; ++q) {
    const Cx<T>* a = s.from + s.width * q;
    Cx<T>* b = s.to + s.width * s.p * q;
    if (s.p == 2)
      two(one, s, a, b, s.turns[q * s.turn], two(d, s, a, b, s.turns[q * s.turn], 0, end), end);
    else if (s.p == 4)
      four(one, s, a, b, q, four(d, s, a, b, q, 0, end), end);
    else
      many(one, s, a, b, q, many(d, s, a, b, q, 0, end), end);
  }
}

}  // namespace

void fft_stage_float(const FftStage<float>& s) { stage(s); }
void fft_stage_double(const FftStage<double>& s) { stage(s); }

}  // namespace anymps::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anymps::cpu {

HWY_EXPORT(fft_stage_float);
HWY_EXPORT(fft_stage_double);

void run_fft_stage(const FftStage<float>& s) { HWY_DYNAMIC_DISPATCH(fft_stage_float)(s); }
void run_fft_stage(const FftStage<double>& s) { HWY_DYNAMIC_DISPATCH(fft_stage_double)(s); }

}  // namespace anymps::cpu
#endif
