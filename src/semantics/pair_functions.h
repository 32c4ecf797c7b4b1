// SPDX-License-Identifier: Apache-2.0
// What elementwise arithmetic beyond the four operations does to one element, under the op's name:
// of pairs, and of triples with a weight. Like semantics/scalar_functions.h, which has the rest.
#pragma once

#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>

#include "semantics/scalar_functions.h"

namespace anymps::scalar {

inline constexpr auto hypot = [](double a, double b) { return std::hypot(a, b); };
inline constexpr auto copysign = [](auto a, auto b) { return std::copysign(a, b); };
inline constexpr auto heaviside = []<typename W>(W x, W at_zero) -> W {
  return x == 0 ? at_zero : static_cast<W>(x > 0);
};

// ln(e^a + e^b) from the larger of the two; the difference of equal infinities is no number.
inline constexpr auto logaddexp = [](double a, double b) {
  if (std::isinf(a) && a == b) return a;
  return std::fmax(a, b) + std::log1p(std::exp(-std::abs(a - b)));
};
inline constexpr auto logaddexp2 = [](double a, double b) {
  if (std::isinf(a) && a == b) return a;
  return std::fmax(a, b) + std::log1p(std::exp2(-std::abs(a - b))) / std::numbers::ln2;
};

// Exact where b is whole: 2^b alone may overflow.
inline constexpr auto ldexp = [](double a, double b) {
  if (b == std::trunc(b) && std::abs(b) < 1e6) return std::ldexp(a, static_cast<int>(b));
  return a * std::exp2(b);
};

// Never negative, but that the absolute value of the lowest integer wraps to itself.
inline constexpr auto gcd = []<typename T>(T a, T b) -> T {
  Unsigned<T> x = static_cast<Unsigned<T>>(abs(a)), y = static_cast<Unsigned<T>>(abs(b));
  if constexpr (sizeof(T) < 4) {  // a narrow number that wrapped is negative still
    constexpr Unsigned<T> kBits = (Unsigned<T>{1} << (8 * sizeof(T))) - 1;
    x &= kBits;
    y &= kBits;
  }
  return static_cast<T>(std::gcd(x, y));
};
inline constexpr auto lcm = []<typename T>(T a, T b) -> T {
  if (a == 0 || b == 0) return 0;
  return abs(wrapping_mul(truncated_quotient(a, gcd(a, b)), b));
};

// From the nearer end, so that both ends are met exactly.
inline constexpr auto lerp = []<typename W>(W a, W b, W weight) -> W {
  return std::abs(weight) < W(0.5) ? a + weight * (b - a) : b - (b - a) * (W(1) - weight);
};
// The last number is the attribute `value`. In double the product of two floats does not overflow.
inline constexpr auto addcmul = [](double x, double a, double b, double value) {
  return x + value * a * b;
};
inline constexpr auto addcdiv = [](double x, double a, double b, double value) {
  return x + value * a / b;
};

inline constexpr auto nan_to_num = [](double x, double nan, double high, double low) {
  if (std::isnan(x)) return nan;
  return std::isinf(x) ? (x > 0 ? high : low) : x;
};

// The largest finite number of a float dtype.
inline double largest_finite(DType dtype) {
  switch (dtype) {
    case DType::kF16:
      return 65504;
    case DType::kBF16:
      return 0x1.fep127;
    case DType::kF32:
      return std::numeric_limits<float>::max();
    default:
      return std::numeric_limits<double>::max();
  }
}

// As in ANYMPS_SCALAR_OPS. WEIGHTED: of three tensors and an attribute.
#define ANYMPS_PAIR_OPS(BINARY, TERNARY, WEIGHTED) \
  BINARY(hypot, kFloat, 10)                        \
  BINARY(copysign, kFloat, 0.2f)                   \
  BINARY(heaviside, kReal, 0.3f)                   \
  BINARY(logaddexp, kFloat, 25)                    \
  BINARY(logaddexp2, kFloat, 25)                   \
  BINARY(ldexp, kFloat, 5)                         \
  BINARY(gcd, kInt, 30)                            \
  BINARY(lcm, kInt, 35)                            \
  TERNARY(lerp, kFloat, 0.4f)                      \
  WEIGHTED(addcmul, kFloat, 0.4f)                  \
  WEIGHTED(addcdiv, kFloat, 0.6f)

}  // namespace anymps::scalar
