// SPDX-License-Identifier: Apache-2.0
// Functions of several contiguous runs, vector by vector, for f32 and f64: the loop and the last
// part of a vector, written once.

// Included once for each instruction set.
#if defined(ANYMPS_RUNS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef ANYMPS_RUNS_INL_H
#undef ANYMPS_RUNS_INL_H
#else
#define ANYMPS_RUNS_INL_H
#endif

#include <hwy/highway.h>

#include <cstring>

HWY_BEFORE_NAMESPACE();
namespace anymps::cpu {
namespace HWY_NAMESPACE {
namespace runs {

namespace hn = hwy::HWY_NAMESPACE;

// A part of a vector, with zeros behind.
template <class D, typename A>
HWY_INLINE hn::Vec<D> load_some(D d, const A* from, size_t n) {
  alignas(64) A buffer[hn::MaxLanes(D())];
  hn::Store(hn::Zero(d), d, buffer);
  std::memcpy(buffer, from, n * sizeof(A));
  return hn::Load(d, buffer);
}
template <class D, typename A>
HWY_INLINE void store_some(hn::Vec<D> v, D d, A* to, size_t n) {
  alignas(64) A buffer[hn::MaxLanes(D())];
  hn::Store(v, d, buffer);
  std::memcpy(to, buffer, n * sizeof(A));
}

// Over vectors of the inputs: f(in, out) computes the outputs.
template <size_t kIn, size_t kOut, typename A, class F>
HWY_INLINE void map(size_t n, const A* const (&in)[kIn], A* const (&out)[kOut], F f) {
  const hn::ScalableTag<A> d;
  using V = hn::Vec<decltype(d)>;
  const size_t lanes = hn::Lanes(d);
  V v[kIn], r[kOut];
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    for (size_t k = 0; k < kIn; ++k) v[k] = hn::LoadU(d, in[k] + i);
    f(v, r);
    for (size_t k = 0; k < kOut; ++k) hn::StoreU(r[k], d, out[k] + i);
  }
  if (const size_t rest = n - i; rest > 0) {
    for (size_t k = 0; k < kIn; ++k) v[k] = load_some(d, in[k] + i, rest);
    f(v, r);
    for (size_t k = 0; k < kOut; ++k) store_some(r[k], d, out[k] + i, rest);
  }
}

// Sums over vectors of the inputs: f(in, terms) computes what is added.
template <size_t kIn, size_t kSums, typename A, class F>
HWY_INLINE void sum_up(size_t n, const A* const (&in)[kIn], A (&result)[kSums], F f) {
  const hn::ScalableTag<A> d;
  using V = hn::Vec<decltype(d)>;
  const size_t lanes = hn::Lanes(d);
  V v[kIn], terms[kSums], even[kSums], odd[kSums];
  for (size_t k = 0; k < kSums; ++k) even[k] = odd[k] = hn::Zero(d);
  const auto take = [&](size_t i, V(&to)[kSums]) HWY_ATTR {
    for (size_t k = 0; k < kIn; ++k) v[k] = hn::LoadU(d, in[k] + i);
    f(v, terms);
    for (size_t k = 0; k < kSums; ++k) to[k] = hn::Add(to[k], terms[k]);
  };
  size_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    take(i, even);
    take(i + lanes, odd);
  }
  for (; i + lanes <= n; i += lanes) take(i, even);
  if (const size_t rest = n - i; rest > 0) {
    for (size_t k = 0; k < kIn; ++k) v[k] = load_some(d, in[k] + i, rest);
    f(v, terms);
    for (size_t k = 0; k < kSums; ++k)
      odd[k] = hn::Add(odd[k], hn::IfThenElseZero(hn::FirstN(d, rest), terms[k]));
  }
  for (size_t k = 0; k < kSums; ++k)
    result[k] = hn::GetLane(hn::SumOfLanes(d, hn::Add(even[k], odd[k])));
}

// Sums over rows, column by column: out[k][i] = sum over r of the k-th term of f(in[…][r * stride +
// i], fixed[…][i]). Sums stay in registers while the rows are walked, four vectors wide, so that
// memory is read in long runs.
template <size_t kIn, size_t kFixed, size_t kSums, typename A, class F>
HWY_INLINE void sum_columns(size_t n, size_t rows, int64_t stride, const A* const (&in)[kIn],
                            const A* const (&fixed)[kFixed], A* const (&out)[kSums], F f) {
  constexpr size_t kWide = 4;
  const hn::ScalableTag<A> d;
  using V = hn::Vec<decltype(d)>;
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + kWide * lanes <= n; i += kWide * lanes) {
    V v[kIn], w[kWide][kFixed], terms[kSums], sums[kWide][kSums];
    for (size_t j = 0; j < kWide; ++j) {
      for (size_t k = 0; k < kFixed; ++k) w[j][k] = hn::LoadU(d, fixed[k] + i + j * lanes);
      for (size_t k = 0; k < kSums; ++k) sums[j][k] = hn::Zero(d);
    }
    for (size_t r = 0; r < rows; ++r) {
      const size_t at = r * static_cast<size_t>(stride) + i;
      for (size_t j = 0; j < kWide; ++j) {
        for (size_t k = 0; k < kIn; ++k) v[k] = hn::LoadU(d, in[k] + at + j * lanes);
        f(v, w[j], terms);
        for (size_t k = 0; k < kSums; ++k) sums[j][k] = hn::Add(sums[j][k], terms[k]);
      }
    }
    for (size_t j = 0; j < kWide; ++j)
      for (size_t k = 0; k < kSums; ++k) hn::StoreU(sums[j][k], d, out[k] + i + j * lanes);
  }
  for (; i < n; i += lanes) {
    const size_t part = n - i < lanes ? n - i : lanes;
    const auto load = [&](const A* at) HWY_ATTR {
      return part == lanes ? hn::LoadU(d, at) : load_some(d, at, part);
    };
    V v[kIn], w[kFixed], terms[kSums], sums[kSums];
    for (size_t k = 0; k < kFixed; ++k) w[k] = load(fixed[k] + i);
    for (size_t k = 0; k < kSums; ++k) sums[k] = hn::Zero(d);
    for (size_t r = 0; r < rows; ++r) {
      for (size_t k = 0; k < kIn; ++k) v[k] = load(in[k] + r * static_cast<size_t>(stride) + i);
      f(v, w, terms);
      for (size_t k = 0; k < kSums; ++k) sums[k] = hn::Add(sums[k], terms[k]);
    }
    for (size_t k = 0; k < kSums; ++k) store_some(sums[k], d, out[k] + i, part);
  }
}

}  // namespace runs
}  // namespace HWY_NAMESPACE
}  // namespace anymps::cpu
HWY_AFTER_NAMESPACE();

#endif
