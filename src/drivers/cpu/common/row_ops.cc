// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/common/row_ops.h"

#include <limits>

#include "drivers/cpu/isa.h"

#define HWY_TARGET_INCLUDE "drivers/cpu/common/row_ops.cc"
#include "drivers/cpu/all_targets.h"

#include "drivers/cpu/common/math-inl.h"
#include "drivers/cpu/common/parts-inl.h"

HWY_BEFORE_NAMESPACE();
namespace anymps::cpu::HWY_NAMESPACE {
namespace {

constexpr size_t kMaxLanes = hn::MaxLanes(Tag());
constexpr float kInf = std::numeric_limits<float>::infinity();

// F has `neutral`, `take(acc, x)` for elements, `join(a, b)` for partial results, `across` for
// lanes.
template <class F>
HWY_INLINE float reduce(const float* x, size_t n, F f) {
  const Tag d;
  const size_t lanes = hn::Lanes(d);
  V a0 = hn::Set(d, F::neutral), a1 = a0, a2 = a0, a3 = a0;
  size_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    a0 = f.take(a0, hn::LoadU(d, x + i));
    a1 = f.take(a1, hn::LoadU(d, x + i + lanes));
    a2 = f.take(a2, hn::LoadU(d, x + i + 2 * lanes));
    a3 = f.take(a3, hn::LoadU(d, x + i + 3 * lanes));
  }
  for (; i + lanes <= n; i += lanes) a0 = f.take(a0, hn::LoadU(d, x + i));
  if (i < n) a1 = f.take(a1, load_part(d, x + i, n - i, f.padding()));
  return f.across(d, f.join(f.join(a0, a1), f.join(a2, a3)));
}

#define ANYMPS_SUM(name, expression)                                                        \
  struct name {                                                                             \
    static constexpr float neutral = 0;                                                     \
    float padding() const { return 0; }                                                     \
    HWY_INLINE V take(V acc, V x) const { return expression; }                              \
    HWY_INLINE V join(V a, V b) const { return hn::Add(a, b); }                             \
    HWY_INLINE float across(Tag d, V v) const { return hn::GetLane(hn::SumOfLanes(d, v)); } \
  };
ANYMPS_SUM(Sum, hn::Add(acc, x))
ANYMPS_SUM(SumAbs, hn::Add(acc, hn::Abs(x)))
ANYMPS_SUM(SumSquares, hn::MulAdd(x, x, acc))
#undef ANYMPS_SUM

struct SumCentered : Sum {
  explicit SumCentered(float m) : mean(m) {}
  float mean;
  float padding() const { return mean; }
  HWY_INLINE V take(V acc, V x) const {
    const V c = hn::Sub(x, hn::Set(Tag(), mean));
    return hn::MulAdd(c, c, acc);
  }
};

struct Product {
  static constexpr float neutral = 1;
  float padding() const { return 1; }
  HWY_INLINE V take(V acc, V x) const { return hn::Mul(acc, x); }
  HWY_INLINE V join(V a, V b) const { return hn::Mul(a, b); }
  HWY_INLINE float across(Tag d, V v) const {
    alignas(64) float parts[kMaxLanes];
    hn::Store(v, d, parts);
    float product = 1;
    for (size_t i = 0; i < hn::Lanes(d); ++i) product *= parts[i];
    return product;
  }
};

// On x86 Min and Max return the second argument if either is NaN, so NaN in acc stays there.
#define ANYMPS_EXTREMUM(name, Function, start)                                            \
  struct name {                                                                           \
    static constexpr float neutral = start;                                               \
    float padding() const { return start; }                                               \
    HWY_INLINE V take(V acc, V x) const {                                                 \
      return hn::IfThenElse(hn::IsNaN(x), x, hn::Function(x, acc));                       \
    }                                                                                     \
    HWY_INLINE V join(V a, V b) const { return take(a, b); }                              \
    HWY_INLINE float across(Tag d, V v) const {                                           \
      if (!hn::AllFalse(d, hn::IsNaN(v))) return std::numeric_limits<float>::quiet_NaN(); \
      return hn::GetLane(hn::Function##OfLanes(d, v));                                    \
    }                                                                                     \
  };                                                                                      \
  struct name##Number : name {                                                            \
    HWY_INLINE V take(V acc, V x) const { return hn::Function(x, acc); }                  \
    HWY_INLINE V join(V a, V b) const { return hn::Function(b, a); }                      \
  };
ANYMPS_EXTREMUM(Max, Max, -kInf)
ANYMPS_EXTREMUM(Min, Min, kInf)
#undef ANYMPS_EXTREMUM

template <class F>
float reduce_with(const float* x, size_t n) {
  return reduce(x, n, F());
}

// The columns of kWide vectors. Totals stay in registers while the rows are walked.
template <size_t kWide, class F>
HWY_INLINE void join_columns(const float* const* rows, size_t count, size_t first, float* y) {
  const Tag d;
  const size_t lanes = hn::Lanes(d);
  const F f;
  V totals[kWide];
  for (V& total : totals) total = hn::Set(d, F::neutral);
  for (size_t r = 0; r < count; ++r)
    for (size_t k = 0; k < kWide; ++k)
      totals[k] = f.take(totals[k], hn::LoadU(d, rows[r] + first + k * lanes));
  for (size_t k = 0; k < kWide; ++k) hn::StoreU(totals[k], d, y + first + k * lanes);
}

// Several vectors at a time, so that a total need not wait for itself. The last one overlaps the
// one before: columns that are computed twice are the same twice.
template <class F>
void join_rows(const float* const* rows, size_t count, float* y, size_t n) {
  const Tag d;
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + 8 * lanes <= n; i += 8 * lanes) join_columns<8, F>(rows, count, i, y);
  if (i + 4 * lanes <= n) join_columns<4, F>(rows, count, i, y), i += 4 * lanes;
  if (i + 2 * lanes <= n) join_columns<2, F>(rows, count, i, y), i += 2 * lanes;
  if (i + lanes <= n) join_columns<1, F>(rows, count, i, y), i += lanes;
  if (i == n) return;
  if (n >= lanes) return join_columns<1, F>(rows, count, n - lanes, y);
  const F f;
  V total = hn::Set(d, F::neutral);
  for (size_t r = 0; r < count; ++r) total = f.take(total, load_part(d, rows[r], n, f.padding()));
  store_part(total, d, y, n);
}

float sum_centered(const float* x, float mean, size_t n) { return reduce(x, n, SumCentered(mean)); }

float exp_sum(const float* x, float shift, float* y, size_t n) {
  const Tag d;
  const size_t lanes = hn::Lanes(d);
  const V s = hn::Set(d, shift);
  V sum0 = hn::Zero(d), sum1 = sum0;
  size_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    const V e0 = math::exp(d, hn::Sub(hn::LoadU(d, x + i), s));
    const V e1 = math::exp(d, hn::Sub(hn::LoadU(d, x + i + lanes), s));
    sum0 = hn::Add(sum0, e0);
    sum1 = hn::Add(sum1, e1);
    if (y) {
      hn::StoreU(e0, d, y + i);
      hn::StoreU(e1, d, y + i + lanes);
    }
  }
  for (; i < n; i += lanes) {
    const size_t part = n - i < lanes ? n - i : lanes;
    const V v = part == lanes ? hn::LoadU(d, x + i) : load_part(d, x + i, part, -kInf);
    V e = math::exp(d, hn::Sub(v, s));
    if (part < lanes) {
      if (y) store_part(e, d, y + i, part);
      e = hn::IfThenElseZero(hn::FirstN(d, part), e);
    } else if (y) {
      hn::StoreU(e, d, y + i);
    }
    sum0 = hn::Add(sum0, e);
  }
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(sum0, sum1)));
}

template <bool has_gamma, bool has_beta>
void normalize_with(const float* x, float mean, float scale, const float* gamma, const float* beta,
                    float* y, size_t n) {
  const Tag d;
  const size_t lanes = hn::Lanes(d);
  const V m = hn::Set(d, mean), s = hn::Set(d, scale);
  const auto apply = [&](V v, V g, V b) HWY_ATTR {
    v = hn::Mul(hn::Sub(v, m), s);
    if (has_gamma && has_beta) return hn::MulAdd(v, g, b);
    if (has_gamma) return hn::Mul(v, g);
    if (has_beta) return hn::Add(v, b);
    return v;
  };
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const V g = has_gamma ? hn::LoadU(d, gamma + i) : s, b = has_beta ? hn::LoadU(d, beta + i) : s;
    hn::StoreU(apply(hn::LoadU(d, x + i), g, b), d, y + i);
  }
  if (const size_t rest = n - i; rest > 0) {
    const V g = has_gamma ? load_part(d, gamma + i, rest, 0) : s;
    const V b = has_beta ? load_part(d, beta + i, rest, 0) : s;
    store_part(apply(load_part(d, x + i, rest, 0), g, b), d, y + i, rest);
  }
}

void normalize(const float* x, float mean, float scale, const float* gamma, const float* beta,
               float* y, size_t n) {
  if (gamma && beta) return normalize_with<true, true>(x, mean, scale, gamma, beta, y, n);
  if (gamma) return normalize_with<true, false>(x, mean, scale, gamma, beta, y, n);
  if (beta) return normalize_with<false, true>(x, mean, scale, gamma, beta, y, n);
  normalize_with<false, false>(x, mean, scale, gamma, beta, y, n);
}

void affine(const float* x, float mean, float scale, float shift, float* y, size_t n) {
  const Tag d;
  const size_t lanes = hn::Lanes(d);
  const V m = hn::Set(d, mean), s = hn::Set(d, scale), b = hn::Set(d, shift);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes)
    hn::StoreU(hn::MulAdd(hn::Sub(hn::LoadU(d, x + i), m), s, b), d, y + i);
  if (const size_t rest = n - i; rest > 0)
    store_part(hn::MulAdd(hn::Sub(load_part(d, x + i, rest, 0), m), s, b), d, y + i, rest);
}

}  // namespace

RowOps row_ops_here() {
  return {reduce_with<Sum>,
          reduce_with<SumAbs>,
          reduce_with<SumSquares>,
          reduce_with<Product>,
          reduce_with<Max>,
          reduce_with<Min>,
          reduce_with<MaxNumber>,
          reduce_with<MinNumber>,
          sum_centered,
          exp_sum,
          normalize,
          affine,
          join_rows<Sum>,
          join_rows<SumAbs>,
          join_rows<SumSquares>,
          join_rows<Max>,
          join_rows<Min>,
          join_rows<MaxNumber>,
          join_rows<MinNumber>};
}

}  // namespace anymps::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anymps::cpu {

HWY_EXPORT(row_ops_here);

const RowOps& row_ops() {
  static const RowOps ops = (isa(), HWY_DYNAMIC_DISPATCH(row_ops_here)());
  return ops;
}

}  // namespace anymps::cpu
#endif
