// SPDX-License-Identifier: Apache-2.0
// Vector forms, in f32, of the special functions that programs spend time in. Where f32 would lose
// digits to a difference, the lanes are computed as two halves of f64.

// Included once for each instruction set.
#if defined(ANYMPS_SPECIAL_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef ANYMPS_SPECIAL_INL_H
#undef ANYMPS_SPECIAL_INL_H
#else
#define ANYMPS_SPECIAL_INL_H
#endif

#include "drivers/cpu/common/math-inl.h"
#include "semantics/special/special_functions.h"

HWY_BEFORE_NAMESPACE();
namespace anymps::cpu {
namespace HWY_NAMESPACE {
namespace math {

// fn of the lanes in f64, in two halves: fn(tag, vectors…).
template <class D, class Fn, class... V>
HWY_INLINE hn::Vec<D> in_double(D d, Fn fn, V... x) {
  const hn::Half<D> dh;
  const hn::Rebind<double, decltype(dh)> dd;
  const auto upper = hn::DemoteTo(dh, fn(dd, hn::PromoteTo(dd, hn::UpperHalf(dh, x))...));
  const auto lower = hn::DemoteTo(dh, fn(dd, hn::PromoteTo(dd, hn::LowerHalf(dh, x))...));
  return hn::Combine(d, upper, lower);
}

// ln(gamma(x)) for x > 0: Stirling's series at x + 8, less the logarithm of the product between.
struct LgammaRight {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    V product = x;
    for (int k = 1; k < 8; ++k) product = hn::Mul(product, hn::Add(x, hn::Set(d, k)));
    const V z = hn::Add(x, hn::Set(d, 8.0)), inverse = hn::Div(hn::Set(d, 1.0), z);
    const V square = hn::Mul(inverse, inverse);
    constexpr double kStirling[] = {-3617.0 / 122400, 1.0 / 156,  -691.0 / 360360, 1.0 / 1188,
                                    -1.0 / 1680,      1.0 / 1260, -1.0 / 360,      1.0 / 12};
    const V series = polynomial(d, square, kStirling);
    V y = hn::MulAdd(hn::Sub(z, hn::Set(d, 0.5)), hn::Log(d, z), hn::Mul(series, inverse));
    y = hn::Add(hn::Sub(y, z), hn::Set(d, 0.91893853320467274178));
    return hn::Sub(y, hn::Log(d, product));
  }
};

template <class D, class V>
HWY_INLINE V lgamma(D d, V x) {
  // Beyond 1e30 the product of eight would leave f64; the lanes that are patched see 1.
  const auto good = hn::And(hn::Gt(x, hn::Zero(d)), hn::Lt(x, hn::Set(d, 1e30f)));
  V y = in_double(d, LgammaRight(), hn::IfThenElse(good, x, hn::Set(d, 1.0f)));
  const auto root = hn::Or(hn::Eq(x, hn::Set(d, 1.0f)), hn::Eq(x, hn::Set(d, 2.0f)));
  y = hn::IfThenZeroElse(root, y);
  return patch(d, x, y, good, [](float v) { return static_cast<float>(special::lgamma(v)); });
}

// The same of the derivative: the product's is one quotient.
struct DigammaRight {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    V product = x, slope = hn::Set(d, 1.0);
    for (int k = 1; k < 8; ++k) {
      const V factor = hn::Add(x, hn::Set(d, k));
      slope = hn::MulAdd(slope, factor, product);
      product = hn::Mul(product, factor);
    }
    const V z = hn::Add(x, hn::Set(d, 8.0)), inverse = hn::Div(hn::Set(d, 1.0), z);
    const V square = hn::Mul(inverse, inverse);
    constexpr double kSlopes[] = {-1.0 / 12,  691.0 / 32760, -1.0 / 132, 1.0 / 240,
                                  -1.0 / 252, 1.0 / 120,     -1.0 / 12};
    const V series = hn::MulAdd(polynomial(d, square, kSlopes), square, hn::Log(d, z));
    const V y = hn::NegMulAdd(hn::Set(d, 0.5), inverse, series);
    return hn::Sub(y, hn::Div(slope, product));
  }
};

template <class D, class V>
HWY_INLINE V digamma(D d, V x) {
  const auto good = hn::And(hn::Gt(x, hn::Set(d, 1e-30f)), hn::Lt(x, hn::Set(d, 1e30f)));
  const V y = in_double(d, DigammaRight(), hn::IfThenElse(good, x, hn::Set(d, 1.0f)));
  return patch(d, x, y, good, [](float v) { return static_cast<float>(special::digamma(v)); });
}

// The sum of c[k] T_k(t) by Clenshaw's recurrence.
template <class D, class V, size_t n>
HWY_INLINE V chebyshev_series(D d, const float (&c)[n], V t) {
  const V twice = hn::Add(t, t);
  V next = hn::Zero(d), after = hn::Zero(d);
  for (size_t k = n - 1; k > 0; --k) {
    const V here = hn::MulAdd(twice, next, hn::Sub(hn::Set(d, c[k]), after));
    after = next;
    next = here;
  }
  return hn::MulAdd(t, next, hn::Sub(hn::Set(d, c[0]), after));
}

// (1 + 2 z) e^(z^2) erfc(z) in (z - 3.75) / (z + 3.75), cut from semantics/special/error.cc.
constexpr float kErfcxSingle[] = {1.17757893f,     -0.00459005458f, -0.0842491334f,
                                  0.05920994f,     -0.0266586684f,  0.00907499767f,
                                  -0.00241316354f, 0.000490775837f, -6.9169733e-05f,
                                  4.13902799e-06f, 7.74038307e-07f, -2.1886401e-07f};

// e^-(z^2) gets back the bits that z^2 loses.
template <class D, class V>
HWY_INLINE V erfc(D d, V x) {
  const V z = hn::Min(hn::Set(d, 11.0f), hn::Abs(x)), one = hn::Set(d, 1.0f);
  const V shift = hn::Set(d, 3.75f), two = hn::Set(d, 2.0f);
  const V scaled =
      hn::Div(chebyshev_series(d, kErfcxSingle, hn::Div(hn::Sub(z, shift), hn::Add(z, shift))),
              hn::MulAdd(two, z, one));
  const V square = hn::Mul(z, z), rest = hn::MulSub(z, z, square), power = exp(d, hn::Neg(square));
  const V tail = hn::Mul(scaled, hn::NegMulAdd(rest, power, power));
  const V outer = hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Sub(two, tail), tail);
  const V center = hn::Sub(one, erf_center(d, x));
  return hn::IfThenElse(hn::Lt(hn::Abs(x), hn::Set(d, 0.5f)), center, outer);
}

// Wichura's AS 241 for single precision; 1 - |x| is above its third range in f32.
template <class D, class V>
HWY_INLINE V erfinv(D d, V x) {
  const V ax = hn::Abs(x), half = hn::Set(d, 0.5f), q = hn::Mul(half, x);
  const V r = hn::NegMulAdd(q, q, hn::Set(d, 0.180625f));
  const V top = polynomial(d, r, {59.109374720f, 159.29113202f, 50.434271938f, 3.3871327179f});
  const V bottom = polynomial(d, r, {67.187563600f, 78.757757664f, 17.895169469f, 1.0f});
  const V scale = hn::Set(d, 0.70710678118f);
  const V center = hn::Mul(hn::Mul(q, scale), hn::Div(top, bottom));
  const auto inner = hn::Le(ax, hn::Set(d, 0.85f));
  if (hn::AllTrue(d, inner)) return center;
  const V part = hn::Mul(half, hn::Sub(hn::Set(d, 1.0f), ax));
  const V s = hn::Sub(hn::Sqrt(hn::Neg(log(d, part))), hn::Set(d, 1.6f));
  // The tail's own digits are those of double precision: with fewer the fit adds to the rounding.
  const V above = polynomial(d, s,
                             {7.7454501428e-4f, 0.022723844989f, 0.24178072518f, 1.2704582525f,
                              3.6478483248f, 5.7694972215f, 4.6303378462f, 1.4234371107f});
  const V below = polynomial(d, s,
                             {1.0507500716e-9f, 5.4759380850e-4f, 0.015198666564f, 0.14810397643f,
                              0.68976733499f, 1.6763848302f, 2.0531916266f, 1.0f});
  V outer = hn::Mul(scale, hn::Div(above, below));
  outer = hn::IfThenElse(hn::Eq(ax, hn::Set(d, 1.0f)),
                         hn::Set(d, std::numeric_limits<float>::infinity()), outer);
  return hn::IfThenElse(inner, center, hn::CopySign(outer, x));
}

// The tables of semantics/special/modified_bessel.cc, cut to single precision.
constexpr float kI0NearSingle[] = {
    0.338397637f,     -0.304682672f,    0.171620902f,    -0.094901097f,    0.0493052842f,
    -0.0237374148f,   0.0105464604f,    -0.00432431f,    0.00163947562f,   -0.000576375575f,
    0.000188502885f,  -5.75419501e-05f, 1.64484481e-05f, -4.41673836e-06f, 1.11738754e-06f,
    -2.67079385e-07f, 6.04699502e-08f,  -1.30002501e-08f};
constexpr float kI0FarSingle[] = {0.402245206f,    0.00336911648f,  6.88975835e-05f,
                                  2.89137052e-06f, 2.04891859e-07f, 2.26666899e-08f};

template <class D, class V>
HWY_INLINE V i0(D d, V x) {
  // Far beyond what overflows, and a root short of infinity.
  const V ax = hn::Min(hn::Set(d, 1000.0f), hn::Abs(x));
  const V eight = hn::Set(d, 8.0f), one = hn::Set(d, 1.0f);
  const auto near = hn::Le(ax, eight);
  V y = chebyshev_series(d, kI0NearSingle, hn::MulSub(hn::Min(eight, ax), hn::Set(d, 0.25f), one));
  if (HWY_UNLIKELY(!hn::AllTrue(d, near))) {
    const V large = hn::Max(eight, ax);
    const V far =
        chebyshev_series(d, kI0FarSingle, hn::Sub(hn::Div(hn::Set(d, 16.0f), large), one));
    y = hn::IfThenElse(near, y, hn::Div(far, hn::Sqrt(large)));
  }
  // In two steps: the product is finite for larger x than the power is.
  const V power = exp(d, hn::Mul(hn::Set(d, 0.5f), ax));
  return hn::Mul(hn::Mul(y, power), power);
}

// sin(pi x) from the place in the period of 2, so that whole numbers give 0.
template <class D, class V>
HWY_INLINE V sinc(D d, V x) {
  const V half = hn::Set(d, 0.5f), one = hn::Set(d, 1.0f), pi = hn::Set(d, 3.14159265359f);
  V place = hn::NegMulAdd(hn::Set(d, 2.0f), hn::Round(hn::Mul(half, x)), x);
  place = hn::IfThenElse(hn::Eq(place, hn::Zero(d)), hn::CopySignToAbs(hn::Zero(d), x), place);
  const V size = hn::Abs(place);
  const V folded =
      hn::IfThenElse(hn::Gt(size, half), hn::CopySign(hn::Sub(one, size), place), place);
  const V y = hn::Div(sin(d, hn::Mul(pi, folded)), hn::Mul(pi, x));
  return hn::IfThenElse(hn::Lt(hn::Abs(x), hn::Set(d, 1e-5f)), one, y);
}

// Near 1/2 the logarithm of a quotient near 1 would lose digits.
template <class D, class V>
HWY_INLINE V logit(D d, V x, float eps) {
  if (eps >= 0) x = bound(d, x, eps, 1 - eps);
  const V one = hn::Set(d, 1.0f), rest = hn::Sub(one, x);
  const V far = log(d, hn::Div(x, rest));
  const V near = hn::Log1p(d, hn::Div(hn::MulSub(hn::Set(d, 2.0f), x, one), rest));
  const auto middle = hn::And(hn::Gt(x, hn::Set(d, 0.25f)), hn::Lt(x, hn::Set(d, 0.75f)));
  return hn::IfThenElse(middle, near, far);
}

template <class D, class V>
HWY_INLINE V xlogy(D d, V x, V y) {
  const auto none = hn::AndNot(hn::IsNaN(y), hn::Eq(x, hn::Zero(d)));
  return hn::IfThenZeroElse(none, hn::Mul(x, log(d, y)));
}

// The larger times a root of at most 2: no square overflows.
template <class D, class V>
HWY_INLINE V hypot(D d, V x, V y) {
  const V inf = hn::Set(d, std::numeric_limits<float>::infinity()), one = hn::Set(d, 1.0f);
  const V ax = hn::Abs(x), ay = hn::Abs(y), large = hn::Max(ax, ay), small = hn::Min(ax, ay);
  const V ratio = hn::IfThenZeroElse(hn::Eq(large, hn::Zero(d)), hn::Div(small, large));
  V z = hn::Mul(large, hn::Sqrt(hn::MulAdd(ratio, ratio, one)));
  z = hn::IfThenElse(hn::Or(hn::IsNaN(x), hn::IsNaN(y)), hn::Add(x, y), z);
  return hn::IfThenElse(hn::Or(hn::Eq(ax, inf), hn::Eq(ay, inf)), inf, z);
}

template <class D, class V>
HWY_INLINE V logaddexp(D d, V x, V y) {
  const V distance = hn::Neg(hn::Abs(hn::Sub(x, y)));
  const V z = hn::Add(hn::Max(x, y), hn::Log1p(d, exp(d, distance)));
  const auto bad = hn::Or(hn::IsNaN(x), hn::IsNaN(y));
  const V sum = hn::IfThenElse(bad, hn::Add(x, y), z);
  const V inf = hn::Set(d, std::numeric_limits<float>::infinity());
  return hn::IfThenElse(hn::And(hn::Eq(x, y), hn::Eq(hn::Abs(x), inf)), x, sum);
}

// x - trunc(x / y) y in f64, exact while the quotient has at most 28 bits; the quotient may be
// rounded up to the next whole number.
struct ModExact {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x, V y) const {
    const V ax = hn::Abs(x), ay = hn::Abs(y);
    const V rest = hn::NegMulAdd(hn::Trunc(hn::Div(ax, ay)), ay, ax);
    return hn::CopySign(hn::IfThenElse(hn::Lt(rest, hn::Zero(d)), hn::Add(rest, ay), rest), x);
  }
};

template <class D, class V>
HWY_INLINE V mod(D d, V x, V y) {
  const auto good = hn::Lt(hn::Abs(x), hn::Mul(hn::Abs(y), hn::Set(d, 0x1p28f)));
  const auto finite = hn::And(good, hn::And(hn::IsFinite(x), hn::IsFinite(y)));
  const V one = hn::Set(d, 1.0f);
  const V z =
      in_double(d, ModExact(), hn::IfThenElse(finite, x, one), hn::IfThenElse(finite, y, one));
  return patch_lanes(
      d, z, finite, [](float u, float v) { return std::fmod(u, v); }, x, y);
}

}  // namespace math
}  // namespace HWY_NAMESPACE
}  // namespace anymps::cpu
HWY_AFTER_NAMESPACE();

#endif  // ANYMPS_SPECIAL_INL_H
