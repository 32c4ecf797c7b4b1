// SPDX-License-Identifier: Apache-2.0
// metal_math, metal_common and metal_relational. Functions of half and bfloat are computed as float
// and rounded once.
#pragma once
#include "map.h"

namespace anymps_metal {

// sin(pi x) and the like: the argument is reduced before it is multiplied.
inline double pi_times(float x) {
  return 3.14159265358979323846 * (x - 2.0 * __builtin_rint(0.5 * x));
}

template <class R>
inline R smaller(R x, R y) {
  if constexpr (is_int<R>)
    return y < x ? y : x;
  else
    return R(__builtin_fminf(x, y));
}
template <class R>
inline R larger(R x, R y) {
  if constexpr (is_int<R>)
    return x < y ? y : x;
  else
    return R(__builtin_fmaxf(x, y));
}

}  // namespace anymps_metal

ANYMPS_REAL1(acos, __builtin_acosf(x))
ANYMPS_REAL1(acosh, __builtin_acoshf(x))
ANYMPS_REAL1(asin, __builtin_asinf(x))
ANYMPS_REAL1(asinh, __builtin_asinhf(x))
ANYMPS_REAL1(atan, __builtin_atanf(x))
ANYMPS_REAL1(atanh, __builtin_atanhf(x))
ANYMPS_REAL1(ceil, __builtin_ceilf(x))
ANYMPS_REAL1(cos, __builtin_cosf(x))
ANYMPS_REAL1(cosh, __builtin_coshf(x))
ANYMPS_REAL1(cospi, float(__builtin_cos(anymps_metal::pi_times(x))))
ANYMPS_REAL1(exp, __builtin_expf(x))
ANYMPS_REAL1(exp2, __builtin_exp2f(x))
ANYMPS_REAL1(exp10, float(__builtin_pow(10.0, x)))
ANYMPS_REAL1(fabs, __builtin_fabsf(x))
ANYMPS_REAL1(floor, __builtin_floorf(x))
ANYMPS_REAL1(fract, __builtin_fminf(x - __builtin_floorf(x), 0x1.fffffep-1f))
ANYMPS_REAL1(log, __builtin_logf(x))
ANYMPS_REAL1(log2, __builtin_log2f(x))
ANYMPS_REAL1(log10, __builtin_log10f(x))
ANYMPS_REAL1(rint, __builtin_rintf(x))
ANYMPS_REAL1(round, __builtin_roundf(x))
ANYMPS_REAL1(rsqrt, 1.0f / __builtin_sqrtf(x))
ANYMPS_REAL1(sin, __builtin_sinf(x))
ANYMPS_REAL1(sinh, __builtin_sinhf(x))
ANYMPS_REAL1(sinpi, float(__builtin_sin(anymps_metal::pi_times(x))))
ANYMPS_REAL1(sqrt, __builtin_sqrtf(x))
ANYMPS_REAL1(tan, __builtin_tanf(x))
ANYMPS_REAL1(tanh, __builtin_tanhf(x))
ANYMPS_REAL1(tanpi, float(__builtin_tan(anymps_metal::pi_times(x))))
ANYMPS_REAL1(trunc, __builtin_truncf(x))
ANYMPS_REAL1(saturate, __builtin_fminf(__builtin_fmaxf(x, 0.0f), 1.0f))
ANYMPS_REAL1(sign, float((x > 0.0f) - (x < 0.0f)))

ANYMPS_REAL2(atan2, __builtin_atan2f(x, y))
ANYMPS_REAL2(copysign, __builtin_copysignf(x, y))
ANYMPS_REAL2(divide, x / y)
ANYMPS_REAL2(fdim, __builtin_fdimf(x, y))
ANYMPS_REAL2(fmax, __builtin_fmaxf(x, y))
ANYMPS_REAL2(fmin, __builtin_fminf(x, y))
ANYMPS_REAL2(fmod, __builtin_fmodf(x, y))
ANYMPS_REAL2(pow, __builtin_powf(x, y))
ANYMPS_REAL2(powr, __builtin_powf(x, y))
ANYMPS_REAL2(step, (y < x ? 0.0f : 1.0f))

ANYMPS_REAL3(fmax3, __builtin_fmaxf(x, __builtin_fmaxf(y, z)))
ANYMPS_REAL3(fmin3, __builtin_fminf(x, __builtin_fminf(y, z)))
ANYMPS_REAL3(mix, x + (y - x) * z)

ANYMPS_TEST1(isfinite, __builtin_isfinite(x))
ANYMPS_TEST1(isinf, __builtin_isinf(x) != 0)
ANYMPS_TEST1(isnan, x != x)
ANYMPS_TEST1(isnormal, __builtin_isnormal(x))
ANYMPS_TEST1(signbit, __builtin_signbit(x) != 0)

ANYMPS_ANY1(abs, anymps_metal::numbers,
            if constexpr (anymps_metal::is_int<R>) return x < R(0) ? R(-x) : x;
            else return R(__builtin_fabsf(x));)
ANYMPS_ANY2(max, anymps_metal::numbers, return anymps_metal::larger<R>(x, y);)
ANYMPS_ANY2(min, anymps_metal::numbers, return anymps_metal::smaller<R>(x, y);)
ANYMPS_ANY3(max3, anymps_metal::numbers,
            return anymps_metal::larger<R>(x, anymps_metal::larger<R>(y, z));)
ANYMPS_ANY3(min3, anymps_metal::numbers,
            return anymps_metal::smaller<R>(x, anymps_metal::smaller<R>(y, z));)
ANYMPS_ANY3(median3, anymps_metal::numbers,
            return anymps_metal::larger<R>(anymps_metal::smaller<R>(x, y),
                                           anymps_metal::smaller<R>(anymps_metal::larger<R>(x, y),
                                                                    z));)
ANYMPS_ANY3(clamp, anymps_metal::numbers,
            return anymps_metal::smaller<R>(anymps_metal::larger<R>(x, y), z);)
// One rounding: the product of two halves or bfloats is exact in double, that of floats needs the
// instruction.
ANYMPS_ANY3(fma, anymps_metal::numbers,
            if constexpr (anymps_metal::one_of<R, half, bfloat>) return R(
                float(__builtin_fma(double(float(x)), double(float(y)), double(float(z)))));
            else return R(__builtin_fmaf(x, y, z));)
ANYMPS_ALSO_PRECISE(abs)
ANYMPS_ALSO_PRECISE(max)
ANYMPS_ALSO_PRECISE(min)
ANYMPS_ALSO_PRECISE(max3)
ANYMPS_ALSO_PRECISE(min3)
ANYMPS_ALSO_PRECISE(median3)
ANYMPS_ALSO_PRECISE(clamp)
ANYMPS_ALSO_PRECISE(fma)

namespace metal {

template <class A, class B, class C>
inline auto smoothstep(const A& from, const B& to, const C& x) {
  const auto t = saturate((x - from) / (to - from));
  return t * t * (3 - 2 * t);
}
template <class A, class B>
inline auto isordered(const A& a, const B& b) {
  return anymps_metal::map<bool>([](float x, float y) { return x == x && y == y; }, a, b);
}
template <class A, class B>
inline auto isunordered(const A& a, const B& b) {
  return anymps_metal::map<bool>([](float x, float y) { return x != x || y != y; }, a, b);
}

template <class A, class E>
inline auto frexp(const A& a, E& exponent) {
  using R = anymps_metal::real_type<A>;
  if constexpr (anymps_metal::width_of<A> == 0) {
    int e = 0;
    const R result = R(__builtin_frexpf(a, &e));
    exponent = e;
    return result;
  } else {
    anymps_metal::value_of<A> result = a;
    for (int i = 0; i < anymps_metal::width_of<A>; ++i) result[i] = frexp(result[i], exponent[i]);
    return result;
  }
}
template <class A, class B>
inline auto ldexp(const A& a, const B& exponent) {
  using R = anymps_metal::real_type<A>;
  return anymps_metal::map<R>([](float x, int e) { return __builtin_ldexpf(x, e); }, a, exponent);
}
template <class A>
inline auto ilogb(const A& a) {
  return anymps_metal::map<int>([](float x) { return __builtin_ilogbf(x); }, a);
}
template <class A, class I>
inline auto modf(const A& a, I& whole) {
  const anymps_metal::value_of<A> value = a;
  const auto integer = trunc(value);
  whole = integer;
  return anymps_metal::map<anymps_metal::real_type<A>>(
      [](float x, float i) { return __builtin_copysignf(__builtin_isinf(x) ? 0.0f : x - i, x); },
      value, integer);
}
template <class A, class C>
inline auto sincos(const A& a, C& cosine) {
  const anymps_metal::value_of<A> value = a;
  cosine = cos(value);
  return sin(value);
}
template <class A, class B>
inline auto nextafter(const A& a, const B& b) {
  using R = anymps_metal::real_type<A, B>;
  return anymps_metal::map<R>(
      [](R x, R y) -> R {
        if constexpr (anymps_metal::same<R, float>) {
          return __builtin_nextafterf(x, y);
        } else {
          if (x != x || y != y) return R(__builtin_nanf(""));
          if (x == y) return y;
          ushort bits = anymps_metal::bits_as<ushort>(x);
          if ((bits & 0x7fff) == 0)
            bits = (float(y) < 0.0f ? 0x8000 : 0) | 1;
          else
            bits += ((x < y) == (float(x) > 0.0f)) ? 1 : -1;
          return anymps_metal::bits_as<R>(bits);
        }
      },
      a, b);
}

template <int N>
inline bool all(const vec<bool, N>& a) {
  bool result = true;
  for (int i = 0; i < N; ++i) result &= a.data[i];
  return result;
}
inline bool all(bool a) { return a; }
template <int N>
inline bool any(const vec<bool, N>& a) {
  bool result = false;
  for (int i = 0; i < N; ++i) result |= a.data[i];
  return result;
}
inline bool any(bool a) { return a; }

// b where the condition holds, else a.
template <class A, class B, class C>
inline auto select(const A& a, const B& b, const C& condition) {
  using R = anymps_metal::element_type<A, B>;
  return anymps_metal::map_values<R, anymps_metal::widest<A, B>>(
      [](R x, R y, bool c) { return c ? y : x; }, static_cast<anymps_metal::value_of<A>>(a),
      static_cast<anymps_metal::value_of<B>>(b), static_cast<anymps_metal::value_of<C>>(condition));
}

namespace precise {
using metal::frexp;
using metal::ilogb;
using metal::ldexp;
using metal::modf;
using metal::nextafter;
using metal::sincos;
using metal::smoothstep;
}  // namespace precise
namespace fast {
using metal::frexp;
using metal::ilogb;
using metal::ldexp;
using metal::modf;
using metal::nextafter;
using metal::sincos;
using metal::smoothstep;
}  // namespace fast

}  // namespace metal
