// SPDX-License-Identifier: Apache-2.0
// Vector math in f32 with the edge cases of <cmath>: what hwy/contrib/math lacks or leaves open for
// NaN, infinities and large arguments. Errors are at most a few units in the last place.

// Included once for each instruction set.
#if defined(ANYMPS_MATH_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef ANYMPS_MATH_INL_H
#undef ANYMPS_MATH_INL_H
#else
#define ANYMPS_MATH_INL_H
#endif

#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

#include <cmath>
#include <limits>

HWY_BEFORE_NAMESPACE();
namespace anymps::cpu {
namespace HWY_NAMESPACE {
namespace math {

namespace hn = hwy::HWY_NAMESPACE;

// c[0] * x^(N-1) + … + c[N-1]
template <class D, class V, typename T, size_t N>
HWY_INLINE V polynomial(D d, V x, const T (&c)[N]) {
  V y = hn::Set(d, c[0]);
  for (size_t i = 1; i < N; ++i) y = hn::MulAdd(y, x, hn::Set(d, c[i]));
  return y;
}

// The same for several x, step by step.
template <class D, class V, typename T, size_t N, size_t M>
HWY_INLINE void polynomials(D d, const V (&x)[M], const T (&c)[N], V (&y)[M]) {
  for (size_t k = 0; k < M; ++k) y[k] = hn::Set(d, c[0]);
  for (size_t i = 1; i < N; ++i)
    for (size_t k = 0; k < M; ++k) y[k] = hn::MulAdd(y[k], x[k], hn::Set(d, c[i]));
}

// y, with the lanes outside `good` computed one by one with the scalar function of the inputs.
template <class D, class V, class M, typename F, class... Inputs>
HWY_INLINE V patch_lanes(D d, V y, M good, F scalar, Inputs... inputs) {
  if (HWY_LIKELY(hn::AllTrue(d, good))) return y;
  alignas(64) float xs[sizeof...(Inputs)][hn::MaxLanes(d)], ys[hn::MaxLanes(d)],
      ok[hn::MaxLanes(d)];
  float(*next)[hn::MaxLanes(d)] = xs;
  (hn::Store(inputs, d, *next++), ...);
  hn::Store(y, d, ys);
  hn::Store(hn::IfThenElseZero(good, hn::Set(d, 1.0f)), d, ok);
  for (size_t i = 0; i < hn::Lanes(d); ++i) {
    if (ok[i] != 0) continue;
    if constexpr (sizeof...(Inputs) == 1)
      ys[i] = scalar(xs[0][i]);
    else
      ys[i] = scalar(xs[0][i], xs[1][i]);
  }
  return hn::Load(d, ys);
}
template <class D, class V, class M, typename F>
HWY_INLINE V patch(D d, V x, V y, M good, F scalar) {
  return patch_lanes(d, y, good, scalar, x);
}

// An odd function y of x with the slope 1 at 0: x itself where the next term is below its last bit,
// so that zeros keep their sign.
template <class D, class V>
HWY_INLINE V odd(D d, V x, V y) {
  return hn::IfThenElse(hn::Lt(hn::Abs(x), hn::Set(d, 1e-4f)), x, y);
}

// e^r - 1 for |r| <= ln(2) / 2.
template <class D, class V, size_t N>
HWY_INLINE void expm1s_reduced(D d, V (&r)[N]) {
  V q[N];
  polynomials(d, r,
              {0.001393454452f, 0.008363776467f, 0.04166645678f, 0.1666657336f, 0.5000000014f}, q);
  for (size_t i = 0; i < N; ++i) r[i] = hn::MulAdd(hn::Mul(r[i], r[i]), q[i], r[i]);
}

template <class D, class V>
HWY_INLINE V expm1_reduced(D d, V r) {
  V one[1] = {r};
  expm1s_reduced(d, one);
  return one[0];
}

// y 2^n for a whole n. Rounded once: results reach infinity and the subnormals.
template <class D, class V>
HWY_INLINE V times_power_of_two(D d, V y, V n) {
#if HWY_TARGET <= HWY_AVX3
  (void)d;
  if constexpr (sizeof(y.raw) == 64)
    return V{_mm512_scalef_ps(y.raw, n.raw)};
  else if constexpr (sizeof(y.raw) == 32)
    return V{_mm256_scalef_ps(y.raw, n.raw)};
  else
    return V{_mm_scalef_ps(y.raw, n.raw)};
#else
  // In two steps, since 2^n alone may be out of range.
  const hn::Rebind<int32_t, D> di;
  const auto whole = hn::ConvertTo(di, n);
  const auto half = hn::ShiftRight<1>(whole);
  const auto power = [&](auto k) HWY_ATTR {
    return hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(k, hn::Set(di, 127))));
  };
  return hn::Mul(hn::Mul(y, power(half)), power(hn::Sub(whole, half)));
#endif
}

// 2^n for a whole n from -126 to 127.
template <class D, class V>
HWY_INLINE V power_of_two(D d, V n) {
#if HWY_TARGET <= HWY_AVX3
  return times_power_of_two(d, hn::Set(d, 1.0f), n);
#else
  const hn::Rebind<int32_t, D> di;
  return hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(hn::ConvertTo(di, n), hn::Set(di, 127))));
#endif
}

// 2^n e^r
template <class D, class V, size_t N>
HWY_INLINE void scales(D d, V (&r)[N], const V (&n)[N]) {
  expm1s_reduced(d, r);
  for (size_t i = 0; i < N; ++i)
    r[i] = times_power_of_two(d, hn::Add(r[i], hn::Set(d, 1.0f)), n[i]);
}

template <class D, class V>
HWY_INLINE V scale(D d, V r, V n) {
  V one[1] = {r};
  scales(d, one, {n});
  return one[0];
}

// Both bounds keep NaN: on x86 Min and Max return the second argument if one is NaN.
template <class D, class V>
HWY_INLINE V bound(D d, V x, float low, float high) {
  return hn::Max(hn::Set(d, low), hn::Min(hn::Set(d, high), x));
}

template <class D, class V>
HWY_INLINE V remove_ln2(D d, V x, V n) {
  const V r = hn::NegMulAdd(n, hn::Set(d, 0.693145751953125f), x);
  return hn::NegMulAdd(n, hn::Set(d, 1.42860682029e-06f), r);
}

template <class D, class V, size_t N>
HWY_INLINE void exps(D d, V (&x)[N]) {
  V n[N];
  for (size_t i = 0; i < N; ++i) {
    x[i] = bound(d, x[i], -104.0f, 89.0f);
    n[i] = hn::Round(hn::Mul(x[i], hn::Set(d, 1.44269504f)));
    x[i] = remove_ln2(d, x[i], n[i]);
  }
  scales(d, x, n);
}

template <class D, class V>
HWY_INLINE V exp(D d, V x) {
  V one[1] = {x};
  exps(d, one);
  return one[0];
}

template <class D, class V>
HWY_INLINE V exp2(D d, V x) {
  x = bound(d, x, -151.0f, 129.0f);
  const V n = hn::Round(x);
  return scale(d, hn::Mul(hn::Sub(x, n), hn::Set(d, 0.693147181f)), n);
}

template <class D, class V>
HWY_INLINE V exp10(D d, V x) {
  x = bound(d, x, -46.0f, 39.0f);
  const V n = hn::Round(hn::Mul(x, hn::Set(d, 3.32192809f)));
  V r = hn::NegMulAdd(n, hn::Set(d, 0.3010253906f), x);
  r = hn::NegMulAdd(n, hn::Set(d, 4.605038981e-06f), r);
  return scale(d, hn::Mul(r, hn::Set(d, 2.302585093f)), n);
}

template <class D, class V>
HWY_INLINE V expm1(D d, V x) {
  const V y = bound(d, x, -20.0f, 88.0f);
  const V n = hn::Round(hn::Mul(y, hn::Set(d, 1.44269504f)));
  const V power = power_of_two(d, n);
  const V p = expm1_reduced(d, remove_ln2(d, y, n));
  const V z = hn::MulAdd(power, p, hn::Sub(power, hn::Set(d, 1.0f)));
  // Keeps the sign of a zero.
  const V low = hn::IfThenElse(hn::Lt(hn::Abs(x), hn::Set(d, 1e-10f)), x, z);
  const auto large = hn::Gt(x, hn::Set(d, 87.0f));
  if (HWY_LIKELY(hn::AllFalse(d, large))) return low;
  return hn::IfThenElse(large, exp(d, x), low);
}

template <class D, class V>
HWY_INLINE V tanh(D d, V x) {
  const V y = expm1(d, bound(d, hn::Add(x, x), -20.0f, 20.0f));
  return hn::Div(y, hn::Add(y, hn::Set(d, 2.0f)));
}

template <class D, class V>
HWY_INLINE V sigmoid(D d, V x) {
  const V one = hn::Set(d, 1.0f);
  return hn::Div(one, hn::Add(one, exp(d, hn::Neg(x))));
}

// What a logarithm gives outside the finite numbers above `pole`.
template <class D, class V>
HWY_INLINE V log_edges(D d, V x, V y, float pole) {
  const float inf = std::numeric_limits<float>::infinity();
  const V at = hn::Set(d, pole);
  y = hn::IfThenElse(hn::Eq(x, hn::Set(d, inf)), x, y);
  y = hn::IfThenElse(hn::Eq(x, at), hn::Set(d, -inf), y);
  const auto valid = hn::Ge(x, at);
  return hn::IfThenElse(valid, y, hn::Set(d, std::numeric_limits<float>::quiet_NaN()));
}

template <class D, class V>
HWY_INLINE V log(D d, V x) {
  return log_edges(d, x, hn::Log(d, x), 0.0f);
}
template <class D, class V>
HWY_INLINE V log2(D d, V x) {
  return log_edges(d, x, hn::Log2(d, x), 0.0f);
}
template <class D, class V>
HWY_INLINE V log10(D d, V x) {
  return log_edges(d, x, hn::Log10(d, x), 0.0f);
}
template <class D, class V>
HWY_INLINE V log1p(D d, V x) {
  return log_edges(d, x, hn::Log1p(d, x), -1.0f);
}

// log(1 + e^x) without overflow.
template <class D, class V>
HWY_INLINE V softplus(D d, V x) {
  const V tail = hn::Log1p(d, exp(d, hn::Neg(hn::Abs(x))));
  // Max gives x if it is NaN.
  return hn::Add(hn::Max(hn::Zero(d), x), tail);
}

// erfc(|x|) for |x| >= 1.
template <class D, class V>
HWY_INLINE V erfc_tail(D d, V ax) {
  const V x = hn::Min(hn::Set(d, 6.0f), ax);
  const V q = polynomial(
      d, x,
      {-8.456781657e-08f, 3.377837956e-06f, -6.117123974e-05f, 0.0006684048397f, -0.004958674309f,
       0.02674199013f, -0.110341606f, 0.3682100439f, -1.13014439f, 0.0002766205909f});
  return exp(d, hn::NegMulAdd(x, x, q));
}

// erf(x) for |x| <= 1.
template <class D, class V>
HWY_INLINE V erf_center(D d, V x) {
  const V s = hn::Mul(x, x);
  const V p = polynomial(d, s,
                         {-9.673590851e-06f, 0.000112682539f, -0.000848439655f, 0.005221053412f,
                          -0.02686543831f, 0.1128378262f, -0.3761263848f, 1.128379167f});
  return hn::Mul(x, p);
}

template <class D, class V>
HWY_INLINE V erf(D d, V x) {
  const V ax = hn::Abs(x);
  const auto outer = hn::Gt(ax, hn::Set(d, 1.0f));
  const V center = erf_center(d, x);
  if (hn::AllFalse(d, outer)) return center;
  const V tail = hn::CopySignToAbs(hn::Sub(hn::Set(d, 1.0f), erfc_tail(d, ax)), x);
  return hn::IfThenElse(outer, tail, center);
}

// ln(erfc(z)) + z^2 on [4.5, 10.1].
template <class D, class V>
HWY_INLINE V log_erfc_far(D d, V z) {
  const V t = hn::Sub(z, hn::Set(d, 7.3f));
  return polynomial(d, t,
                    {-9.706257658e-08f, 9.121660435e-07f, -7.317086422e-06f, 7.308870582e-05f,
                     -0.0007706541682f, 0.008893319208f, -0.1345284761f, -2.569411686f});
}

// x Φ(x), Φ the normal distribution. One polynomial for ln(erfc(z)) + z^2 on [0, 4.5] serves both
// sides and a second one what is left of it, so the left tail keeps its relative precision until
// f32 has no numbers for it. On the right the tail is nothing beside 1 there. Step by step for
// several vectors: each step waits for the one before, and eight chains side by side take half as
// long as one after the other.
template <class D, class V, size_t N>
HWY_INLINE void gelus(D d, V (&x)[N]) {
  const V top = hn::Set(d, 4.5f), one = hn::Set(d, 1.0f);
  V z[N], t[N], q[N];
  auto far = hn::Lt(x[0], hn::Set(d, -6.3639610f));
  for (size_t i = 0; i < N; ++i) {
    z[i] = hn::Abs(hn::Mul(x[i], hn::Set(d, 0.70710678118f)));
    t[i] = hn::Sub(hn::Min(top, z[i]), hn::Set(d, 2.25f));
    far = hn::Or(far, hn::Lt(x[i], hn::Set(d, -6.3639610f)));
  }
  polynomials(d, t,
              {-1.962011977e-07f, 4.882009872e-07f, 2.839944355e-06f, -1.973910745e-05f,
               0.0001005441871f, -0.0005475881576f, 0.002773822615f, -0.01331926233f,
               0.06513135608f, -0.382912086f, -1.464959821f},
              q);
  if (HWY_UNLIKELY(!hn::AllFalse(d, far)))
    for (size_t i = 0; i < N; ++i)
      q[i] = hn::IfThenElse(hn::Gt(z[i], top), log_erfc_far(d, hn::Min(hn::Set(d, 10.1f), z[i])),
                            q[i]);
  for (size_t i = 0; i < N; ++i) t[i] = hn::NegMulAdd(z[i], z[i], q[i]);
  exps(d, t);
  for (size_t i = 0; i < N; ++i) {
    const V tail = hn::Mul(hn::Set(d, 0.5f), t[i]);
    x[i] = hn::Mul(x[i], hn::IfThenElse(hn::Gt(x[i], hn::Zero(d)), hn::Sub(one, tail), tail));
  }
}

template <class D, class V>
HWY_INLINE V gelu(D d, V x) {
  V one[1] = {x};
  gelus(d, one);
  return one[0];
}

// x sigmoid(2 u): 1 + tanh(u) would lose the left tail.
template <class D, class V>
HWY_INLINE V gelu_tanh(D d, V x) {
  const V cube = hn::Mul(hn::Mul(x, x), x);
  const V u = hn::Mul(hn::Set(d, -1.5957691216f), hn::MulAdd(hn::Set(d, 0.044715f), cube, x));
  return hn::Div(x, hn::Add(hn::Set(d, 1.0f), exp(d, u)));
}

// The slopes of activations. s (1 - s) as e / (1 + e)^2 with e = exp(-|x|) loses no tail.
template <class D, class V>
HWY_INLINE V sigmoid_slope(D d, V x) {
  const V e = exp(d, hn::Neg(hn::Abs(x))), below = hn::Add(e, hn::Set(d, 1.0f));
  return hn::Div(e, hn::Mul(below, below));
}

// s (1 + x (1 - s) k) with s = sigmoid(u): the slope of x s where u has the slope k.
template <class D, class V>
HWY_INLINE V gated_slope(D d, V x, V u, V k) {
  const V one = hn::Set(d, 1.0f), s = sigmoid(d, u);
  return hn::Mul(s, hn::MulAdd(hn::Mul(x, hn::Sub(one, s)), k, one));
}

template <class D, class V>
HWY_INLINE V silu_slope(D d, V x) {
  const V z = bound(d, x, -800.0f, 800.0f);
  return gated_slope(d, z, z, hn::Set(d, 1.0f));
}

template <class D, class V>
HWY_INLINE V gelu_tanh_slope(D d, V x) {
  const V z = bound(d, x, -40.0f, 40.0f), one = hn::Set(d, 1.0f);
  const V scale = hn::Set(d, 1.5957691216f), cubic = hn::Mul(hn::Set(d, 0.044715f), hn::Mul(z, z));
  const V u = hn::Mul(scale, hn::MulAdd(cubic, z, z));
  return gated_slope(d, z, u, hn::Mul(scale, hn::MulAdd(hn::Set(d, 3.0f), cubic, one)));
}

// Φ(x) + x φ(x), Φ the normal distribution and φ its density c E with E = exp(-x^2 / 2). With the
// tail of Φ as E times a function that is smooth, here a polynomial of (|x| - 3) / (|x| + 3), one
// exponential serves both terms, and the left tail keeps its relative precision.
template <class D, class V>
HWY_INLINE V gelu_slope(D d, V x) {
  const V ax = hn::Abs(bound(d, x, -40.0f, 40.0f)), half = hn::Set(d, 0.5f);
  const V square = hn::Mul(ax, ax), rest = hn::MulSub(ax, ax, square);
  const V e = exp(d, hn::Mul(hn::Set(d, -0.5f), square));
  const V density = hn::NegMulAdd(hn::Mul(half, rest), e, e);  // but for c
  const V three = hn::Set(d, 3.0f), t = hn::Div(hn::Sub(ax, three), hn::Add(ax, three));
  const V ratio = polynomial(
      d, t,
      {0.000106123805f, 0.0002298207787f, -0.0006778356043f, -0.001966389996f, 0.00580870513f,
       0.01226383283f, -0.09242651578f, 0.2464500868f, -0.4128052414f, 0.243027895f});
  const V term = hn::Mul(hn::Mul(hn::Set(d, 0.3989422804f), ax), density);
  const V tail = hn::MulSub(hn::Mul(half, density), ratio, term);
  return hn::IfThenElse(hn::Gt(x, hn::Zero(d)), hn::Sub(hn::Set(d, 1.0f), tail), tail);
}

// One exponential: see semantics/activation_formulas.h. Above 20 the slope is 1.
template <class D, class V>
HWY_INLINE V mish_slope(D d, V x) {
  const V z = bound(d, x, -800.0f, 20.0f), e = exp(d, z);
  const V one = hn::Set(d, 1.0f), two = hn::Set(d, 2.0f), four = hn::Set(d, 4.0f);
  const V n = hn::Mul(e, hn::Add(e, two)), below = hn::Add(n, two);
  const V term = hn::Mul(hn::Mul(four, z), hn::Mul(e, hn::Add(one, e)));
  return hn::Div(hn::MulAdd(n, below, term), hn::Mul(below, below));
}

#define ANYMPS_PATCHED(function, Fast, condition, Scalar)                   \
  template <class D, class V>                                               \
  HWY_INLINE V function(D d, V x) {                                         \
    const V ax = hn::Abs(x);                                                \
    (void)ax;                                                               \
    return patch(d, x, Fast, condition, [](float v) { return Scalar(v); }); \
  }
ANYMPS_PATCHED(sin, odd(d, x, hn::Sin(d, x)), hn::Lt(ax, hn::Set(d, 39000.0f)), std::sin)
ANYMPS_PATCHED(cos, hn::Cos(d, x), hn::Lt(ax, hn::Set(d, 39000.0f)), std::cos)
ANYMPS_PATCHED(tan, odd(d, x, hn::Div(hn::Sin(d, x), hn::Cos(d, x))),
               hn::Lt(ax, hn::Set(d, 39000.0f)), std::tan)
ANYMPS_PATCHED(sinh, hn::Sinh(d, x), hn::Lt(ax, hn::Set(d, 87.0f)), std::sinh)
ANYMPS_PATCHED(asin, hn::Asin(d, x), hn::Le(ax, hn::Set(d, 1.0f)), std::asin)
ANYMPS_PATCHED(acos, hn::Acos(d, x), hn::Le(ax, hn::Set(d, 1.0f)), std::acos)
ANYMPS_PATCHED(asinh, hn::Asinh(d, x), hn::Lt(ax, hn::Set(d, 1e18f)), std::asinh)
ANYMPS_PATCHED(acosh, hn::Acosh(d, x),
               hn::And(hn::Gt(x, hn::Set(d, 1.0f)), hn::Lt(ax, hn::Set(d, 1e18f))), std::acosh)
ANYMPS_PATCHED(atanh, hn::Atanh(d, x), hn::Lt(ax, hn::Set(d, 1.0f)), std::atanh)
#undef ANYMPS_PATCHED

template <class D, class V>
HWY_INLINE V atan(D d, V x) {
  return hn::Atan(d, x);
}

template <class D, class V>
HWY_INLINE V cosh(D d, V x) {
  const V e = exp(d, hn::Abs(x));
  const V half = hn::Set(d, 0.5f);
  const V y = hn::MulAdd(half, e, hn::Div(half, e));
  return patch(d, x, y, hn::Lt(hn::Abs(x), hn::Set(d, 88.0f)),
               [](float v) { return std::cosh(v); });
}

// x^y for finite x > 0 through f64.
template <class D, class V>
HWY_INLINE V pow_positive(D d, V x, V y) {
  const hn::Half<D> dh;
  const hn::Rebind<double, decltype(dh)> dd;
  const auto part = [&](auto xh, auto yh) HWY_ATTR {
    auto e = hn::Mul(hn::PromoteTo(dd, yh), hn::Log(dd, hn::PromoteTo(dd, xh)));
    e = hn::Max(hn::Set(dd, -200.0), hn::Min(hn::Set(dd, 200.0), e));
    return hn::DemoteTo(dh, hn::Exp(dd, e));
  };
  return hn::Combine(d, part(hn::UpperHalf(dh, x), hn::UpperHalf(dh, y)),
                     part(hn::LowerHalf(dh, x), hn::LowerHalf(dh, y)));
}

template <class D, class V>
HWY_INLINE V pow(D d, V x, V y) {
  const V max = hn::Set(d, std::numeric_limits<float>::max());
  const auto good =
      hn::And(hn::And(hn::Gt(x, hn::Zero(d)), hn::Le(x, max)), hn::Le(hn::Abs(y), max));
  // The vector functions see a harmless number in the other lanes.
  const V z =
      pow_positive(d, hn::IfThenElse(good, x, hn::Set(d, 1.0f)), hn::IfThenElseZero(good, y));
  return patch_lanes(
      d, z, good, [](float u, float v) { return std::pow(u, v); }, x, y);
}

}  // namespace math
}  // namespace HWY_NAMESPACE
}  // namespace anymps::cpu
HWY_AFTER_NAMESPACE();

#endif  // ANYMPS_MATH_INL_H
