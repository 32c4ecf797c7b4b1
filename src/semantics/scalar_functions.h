// SPDX-License-Identifier: Apache-2.0
// What each elementwise op does to one element, under the op's name; those of activations are in
// semantics/activation_formulas.h. Floats are computed in double and rounded once, so that the
// oracle is at least as exact as any kernel; integers wrap.
#pragma once

#include <bit>
#include <cmath>
#include <complex>
#include <limits>
#include <numbers>
#include <type_traits>

#include "base/dtype.h"
#include "semantics/activation_formulas.h"

namespace anymps {

// The type in which the reference computes with elements of storage type T.
template <typename T>
inline constexpr bool kWidens =
    std::is_same_v<T, float> || std::is_same_v<T, Half> || std::is_same_v<T, BFloat>;
template <typename T>
using Wide =
    std::conditional_t<kIsComplexType<T>, WideComplex, std::conditional_t<kWidens<T>, double, T>>;

template <typename T>
Wide<T> widen(T value) {
  return static_cast<Wide<T>>(static_cast<Compute<T>>(value));
}
template <typename T>
T narrow(Wide<T> value) {
  return static_cast<T>(static_cast<Compute<T>>(value));
}

namespace scalar {

template <typename W>
inline constexpr bool kIsComplex = !std::is_arithmetic_v<W>;
template <typename W>
inline constexpr bool kIsInteger = std::is_integral_v<W>;

// Integer arithmetic modulo 2^n, in unsigned words: 32 bits hold what every narrower type keeps,
// and vectors of them are faster than those of 64.
template <typename T>
using Unsigned = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
template <typename T>
T wrapping_add(T a, T b) {
  return static_cast<T>(static_cast<Unsigned<T>>(a) + static_cast<Unsigned<T>>(b));
}
template <typename T>
T wrapping_sub(T a, T b) {
  return static_cast<T>(static_cast<Unsigned<T>>(a) - static_cast<Unsigned<T>>(b));
}
template <typename T>
T wrapping_mul(T a, T b) {
  return static_cast<T>(static_cast<Unsigned<T>>(a) * static_cast<Unsigned<T>>(b));
}

// Float to integer: toward zero, clamped to the type's range, NaN to 0.
template <typename T>
T saturate(double x) {
  if (std::isnan(x)) return 0;
  if (x <= static_cast<double>(std::numeric_limits<T>::lowest()))
    return std::numeric_limits<T>::lowest();
  if (x >= std::ldexp(1.0, std::numeric_limits<T>::digits)) return std::numeric_limits<T>::max();
  return static_cast<T>(x);
}

// Any storage type to any other: the op `cast`. A complex number gives its real part.
template <typename To, typename From>
To convert(From from) {
  if constexpr (std::is_same_v<To, From>) {
    return from;
  } else if constexpr (std::is_same_v<To, bool>) {
    return static_cast<Compute<From>>(from) != Compute<From>(0);
  } else if constexpr (kIsComplexType<From>) {
    if constexpr (kIsComplexType<To>)
      return To(from);
    else
      return convert<To>(from.real());
  } else if constexpr (kIsComplexType<To>) {
    return To(static_cast<typename To::value_type>(static_cast<Compute<From>>(from)));
  } else if constexpr (std::is_integral_v<To>) {
    if constexpr (std::is_integral_v<From>)
      return static_cast<To>(from);
    else
      return saturate<To>(static_cast<Compute<From>>(from));
  } else {
    return static_cast<To>(static_cast<Compute<To>>(static_cast<Compute<From>>(from)));
  }
}

// Unary. Each takes the wide type: double, std::complex<double> or an integer.
inline constexpr auto identity = [](auto x) { return x; };
inline constexpr auto exp = [](auto x) { return std::exp(x); };
inline constexpr auto exp2 = []<typename W>(W x) {
  if constexpr (kIsComplex<W>)
    return std::exp(x * std::numbers::ln2);
  else
    return std::exp2(x);
};
inline constexpr auto exp10 = [](auto x) { return std::pow(10.0, x); };
inline constexpr auto expm1 = []<typename W>(W x) {
  if constexpr (kIsComplex<W>) {
    // e^a cos b - 1 without the difference of numbers near 1.
    const double a = x.real(), b = x.imag(), half = std::sin(b / 2), less = std::expm1(a);
    return W(less * std::cos(b) - 2 * half * half, b == 0 ? b : (less + 1) * std::sin(b));
  } else {
    return std::expm1(x);
  }
};
inline constexpr auto log = [](auto x) { return std::log(x); };
inline constexpr auto log2 = []<typename W>(W x) {
  if constexpr (kIsComplex<W>)
    return std::log(x) / std::numbers::ln2;
  else
    return std::log2(x);
};
inline constexpr auto log10 = [](auto x) { return std::log10(x); };
inline constexpr auto log1p = []<typename W>(W x) {
  if constexpr (kIsComplex<W>) {
    // Near 0 the modulus of 1 + x is near 1: the logarithm of its square less 1.
    const double a = x.real(), b = x.imag(), angle = std::atan2(b, a + 1);
    if (std::abs(a) < 0.5 && std::abs(b) < 0.5)
      return W(0.5 * std::log1p(a * (a + 2) + b * b), angle);
    return W(std::log(std::hypot(a + 1, b)), angle);
  } else {
    return std::log1p(x);
  }
};
inline constexpr auto sqrt = [](auto x) { return std::sqrt(x); };
inline constexpr auto rsqrt = [](auto x) { return 1.0 / std::sqrt(x); };
inline constexpr auto reciprocal = [](auto x) { return 1.0 / x; };
inline constexpr auto sin = [](auto x) { return std::sin(x); };
inline constexpr auto cos = [](auto x) { return std::cos(x); };
inline constexpr auto tan = [](auto x) { return std::tan(x); };
inline constexpr auto sinh = [](auto x) { return std::sinh(x); };
inline constexpr auto cosh = [](auto x) { return std::cosh(x); };
inline constexpr auto tanh = [](auto x) { return std::tanh(x); };
inline constexpr auto asin = [](auto x) { return std::asin(x); };
inline constexpr auto acos = [](auto x) { return std::acos(x); };
inline constexpr auto atan = [](auto x) { return std::atan(x); };
inline constexpr auto asinh = [](auto x) { return std::asinh(x); };
inline constexpr auto acosh = [](auto x) { return std::acosh(x); };
inline constexpr auto atanh = [](auto x) { return std::atanh(x); };
inline constexpr auto erf = [](auto x) { return std::erf(x); };

inline constexpr auto square = []<typename W>(W x) {
  if constexpr (kIsInteger<W>)
    return wrapping_mul(x, x);
  else
    return x * x;
};
inline constexpr auto neg = []<typename W>(W x) {
  if constexpr (kIsInteger<W>)
    return wrapping_sub(W{0}, x);
  else
    return -x;
};
inline constexpr auto abs = []<typename W>(W x) {
  if constexpr (kIsInteger<W>)
    return x < 0 ? wrapping_sub(W{0}, x) : x;
  else
    return std::abs(x);
};
inline constexpr auto sign = []<typename W>(W x) {
  if constexpr (!kIsInteger<W>) {
    if (std::isnan(x)) return x;
  }
  return static_cast<W>((x > 0) - (x < 0));
};
inline constexpr auto signbit = []<typename W>(W x) -> bool {
  if constexpr (kIsInteger<W>)
    return x < 0;
  else
    return std::signbit(x);
};
#define ANYMPS_ROUNDING(name, function)                   \
  inline constexpr auto name = []<typename W>(W x) -> W { \
    if constexpr (kIsInteger<W>)                          \
      return x;                                           \
    else                                                  \
      return function(x);                                 \
  };
ANYMPS_ROUNDING(ceil, std::ceil)
ANYMPS_ROUNDING(floor, std::floor)
ANYMPS_ROUNDING(round, std::round)
ANYMPS_ROUNDING(rint, std::nearbyint)
ANYMPS_ROUNDING(trunc, std::trunc)
#undef ANYMPS_ROUNDING

// Binary.
inline constexpr auto add = []<typename W>(W a, W b) {
  if constexpr (kIsInteger<W>)
    return wrapping_add(a, b);
  else
    return a + b;
};
inline constexpr auto sub = []<typename W>(W a, W b) {
  if constexpr (kIsInteger<W>)
    return wrapping_sub(a, b);
  else
    return a - b;
};
inline constexpr auto mul = []<typename W>(W a, W b) {
  if constexpr (kIsInteger<W>)
    return wrapping_mul(a, b);
  else
    return a * b;
};

template <typename T>
void check_divisor(T b, const char* op) {
  require(b != 0, "[{}] integer division by zero", op);
}
template <typename T>
T truncated_quotient(T a, T b) {
  if constexpr (std::is_signed_v<T>)
    if (b == -1) return wrapping_sub(T{0}, a);  // the lowest value has no negative: it wraps
  return static_cast<T>(a / b);
}
template <typename T>
T truncated_remainder(T a, T b) {
  if constexpr (std::is_signed_v<T>)
    if (b == -1) return 0;
  return static_cast<T>(a % b);
}
inline constexpr auto div = []<typename W>(W a, W b) {
  if constexpr (kIsInteger<W>)
    return check_divisor(b, "div"), truncated_quotient(a, b);
  else
    return a / b;
};
// The quotient is rounded to the type in which halves are computed before it is made whole.
inline constexpr auto div_trunc = []<typename T>(T a, T b) -> T {
  if constexpr (kIsInteger<T>)
    return div(a, b);
  else
    return std::trunc(a / b);
};
inline constexpr auto div_floor = []<typename T>(T a, T b) -> T {
  if constexpr (kIsInteger<T>) {
    check_divisor(b, "div");
    const T quotient = truncated_quotient(a, b), remainder = truncated_remainder(a, b);
    return static_cast<T>(quotient - (remainder != 0 && (remainder < 0) != (b < 0)));
  } else {
    return std::floor(a / b);
  }
};
inline constexpr auto div_no_nan = []<typename W>(W a, W b) -> W {
  return b == W(0) ? W(0) : div(a, b);
};
inline constexpr auto mod = []<typename W>(W a, W b) {
  if constexpr (kIsInteger<W>)
    return check_divisor(b, "mod"), truncated_remainder(a, b);
  else
    return std::fmod(a, b);
};
inline constexpr auto floor_mod = []<typename W>(W a, W b) -> W {
  W remainder;
  if constexpr (kIsInteger<W>) {
    check_divisor(b, "floor_mod");
    remainder = truncated_remainder(a, b);
  } else {
    remainder = std::fmod(a, b);
    if (remainder == 0) return std::copysign(remainder, b);
  }
  return remainder != 0 && (remainder < 0) != (b < 0) ? static_cast<W>(remainder + b) : remainder;
};
inline constexpr auto pow = []<typename W>(W a, W b) -> W {
  if constexpr (!kIsInteger<W>) {
    return std::pow(a, b);
  } else {
    if (b < 0) {  // 1 / a^|b|, toward zero
      if (a == 1) return 1;
      if constexpr (std::is_signed_v<W>)
        if (a == -1) return b % 2 == 0 ? W{1} : W{-1};
      return 0;
    }
    W result = 1;
    for (; b != 0; b = static_cast<W>(b >> 1)) {
      if (b & 1) result = wrapping_mul(result, a);
      a = wrapping_mul(a, a);
    }
    return result;
  }
};
inline constexpr auto atan2 = [](auto a, auto b) { return std::atan2(a, b); };

template <typename W>
bool is_nan_value(W x) {
  if constexpr (kIsInteger<W>)
    return (void)x, false;
  else
    return std::isnan(x);
}
// With propagate_nan a NaN on either side is the result; without, the other side is.
inline constexpr auto min = []<typename W>(W a, W b, bool propagate_nan) {
  if (is_nan_value(a)) return propagate_nan ? a : b;
  if (is_nan_value(b)) return propagate_nan ? b : a;
  return b < a ? b : a;
};
inline constexpr auto max = []<typename W>(W a, W b, bool propagate_nan) {
  if (is_nan_value(a)) return propagate_nan ? a : b;
  if (is_nan_value(b)) return propagate_nan ? b : a;
  return a < b ? b : a;
};
// Gradients of activations.
inline constexpr auto relu_gradient = []<typename W>(W dy, W x) { return x > 0 ? dy : W{0}; };
inline constexpr auto leaky_relu_gradient = []<typename W>(W dy, W x, W alpha) {
  return x < 0 ? alpha * dy : dy;
};

// A step down the gradient.
inline constexpr auto sgd = [](double value, double gradient, double rate) {
  return value - rate * gradient;
};

// Bits. Shifts go through the unsigned type, where they are defined for every number.
template <typename T>
bool shifts_all(T b) {
  return b < 0 || static_cast<uint64_t>(b) >= 8 * sizeof(T);
}
inline constexpr auto bitwise_and = []<typename T>(T a, T b) { return static_cast<T>(a & b); };
inline constexpr auto bitwise_or = []<typename T>(T a, T b) { return static_cast<T>(a | b); };
inline constexpr auto bitwise_xor = []<typename T>(T a, T b) { return static_cast<T>(a ^ b); };
inline constexpr auto bitwise_not = []<typename T>(T x) {
  if constexpr (std::is_same_v<T, bool>)
    return !x;
  else
    return static_cast<T>(~x);
};
inline constexpr auto left_shift = []<typename T>(T a, T b) -> T {
  return shifts_all(b) ? T{0} : static_cast<T>(static_cast<uint64_t>(a) << b);
};
inline constexpr auto right_shift = []<typename T>(T a, T b) -> T {
  if (shifts_all(b)) return a < 0 ? static_cast<T>(-1) : T{0};
  return static_cast<T>(a >> b);
};
inline constexpr auto population_count = []<typename T>(T x) {
  return static_cast<T>(std::popcount(static_cast<std::make_unsigned_t<T>>(x)));
};

// Parts of complex numbers.
inline constexpr auto real_part = [](std::complex<double> x) { return x.real(); };
inline constexpr auto imaginary_part = [](std::complex<double> x) { return x.imag(); };
inline constexpr auto complex_abs = [](std::complex<double> x) { return std::abs(x); };
inline constexpr auto absolute_square = [](std::complex<double> x) { return std::norm(x); };
inline constexpr auto conjugate = [](std::complex<double> x) { return std::conj(x); };
inline constexpr auto make_complex = [](double real, double imaginary) {
  return std::complex<double>(real, imaginary);
};

// Comparisons and tests: the result is bool.
inline constexpr auto equal = [](auto a, auto b) { return a == b; };
inline constexpr auto not_equal = [](auto a, auto b) { return a != b; };
inline constexpr auto less = [](auto a, auto b) { return a < b; };
inline constexpr auto less_equal = [](auto a, auto b) { return a <= b; };
inline constexpr auto greater = [](auto a, auto b) { return a > b; };
inline constexpr auto greater_equal = [](auto a, auto b) { return a >= b; };
inline constexpr auto is_nan = [](double x) { return std::isnan(x); };
inline constexpr auto is_inf = [](double x, bool positive, bool negative) {
  return std::isinf(x) && (x > 0 ? positive : negative);
};
inline constexpr auto is_finite = [](double x) { return std::isfinite(x); };

// Logic.
inline constexpr auto logical_not = [](bool x) { return !x; };
inline constexpr auto logical_and = [](bool a, bool b) { return a && b; };
inline constexpr auto logical_or = [](bool a, bool b) { return a || b; };
inline constexpr auto logical_xor = [](bool a, bool b) { return a != b; };
inline constexpr auto logical_nand = [](bool a, bool b) { return !(a && b); };
inline constexpr auto logical_nor = [](bool a, bool b) { return !(a || b); };
inline constexpr auto logical_xnor = [](bool a, bool b) { return a == b; };
inline constexpr auto where = [](bool cond, auto a, auto b) { return cond ? a : b; };

// The ops that are one of these functions and nothing more, with the dtypes of their records.
// Drivers make kernels from the list: the reference, and the CPU for what it has no vector code
// for. The number is about how many nanoseconds an element takes in a loop.
//   UNARY, BINARY, TERNARY: the result has the dtype of the inputs. TEST, COMPARE: it is a bool, of
//   one or of two.
#define ANYMPS_SCALAR_OPS(UNARY, BINARY, TERNARY, TEST, COMPARE) \
  UNARY(exp, kFloat | kComplex, 10)                              \
  UNARY(exp2, kFloat | kComplex, 10)                             \
  UNARY(exp10, kFloat, 20)                                       \
  UNARY(expm1, kFloat | kComplex, 10)                            \
  UNARY(log, kFloat | kComplex, 10)                              \
  UNARY(log2, kFloat | kComplex, 10)                             \
  UNARY(log10, kFloat | kComplex, 10)                            \
  UNARY(log1p, kFloat | kComplex, 10)                            \
  UNARY(square, kNumber, 0.2f)                                   \
  UNARY(sqrt, kFloat | kComplex, 2)                              \
  UNARY(rsqrt, kFloat | kComplex, 3)                             \
  UNARY(reciprocal, kFloat | kComplex, 2)                        \
  UNARY(abs, kReal, 0.2f)                                        \
  UNARY(neg, kNumber, 0.2f)                                      \
  UNARY(sign, kReal, 0.3f)                                       \
  UNARY(ceil, kReal, 0.5f)                                       \
  UNARY(floor, kReal, 0.5f)                                      \
  UNARY(round, kReal, 2)                                         \
  UNARY(rint, kReal, 0.5f)                                       \
  UNARY(trunc, kReal, 0.5f)                                      \
  UNARY(sin, kFloat | kComplex, 10)                              \
  UNARY(cos, kFloat | kComplex, 10)                              \
  UNARY(tan, kFloat | kComplex, 15)                              \
  UNARY(sinh, kFloat | kComplex, 15)                             \
  UNARY(cosh, kFloat | kComplex, 15)                             \
  UNARY(tanh, kFloat | kComplex, 15)                             \
  UNARY(asin, kFloat | kComplex, 15)                             \
  UNARY(acos, kFloat | kComplex, 15)                             \
  UNARY(atan, kFloat | kComplex, 15)                             \
  UNARY(asinh, kFloat | kComplex, 20)                            \
  UNARY(acosh, kFloat | kComplex, 20)                            \
  UNARY(atanh, kFloat | kComplex, 20)                            \
  UNARY(erf, kFloat, 15)                                         \
  UNARY(relu, kReal, 0.2f)                                       \
  UNARY(bitwise_not, kInt | kBoolean, 0.1f)                      \
  UNARY(population_count, kInt, 0.5f)                            \
  UNARY(conjugate, kComplex, 0.3f)                               \
  BINARY(add, kAny, 0.2f)                                        \
  BINARY(sub, kNumber, 0.2f)                                     \
  BINARY(mul, kAny, 0.3f)                                        \
  BINARY(div_no_nan, kNumber, 3)                                 \
  BINARY(mod, kReal, 5)                                          \
  BINARY(floor_mod, kReal, 6)                                    \
  BINARY(pow, kNumber, 20)                                       \
  BINARY(atan2, kFloat, 20)                                      \
  BINARY(prelu, kFloat, 0.2f)                                    \
  BINARY(relu_gradient, kFloat, 0.2f)                            \
  BINARY(bitwise_and, kInt | kBoolean, 0.1f)                     \
  BINARY(bitwise_or, kInt | kBoolean, 0.1f)                      \
  BINARY(bitwise_xor, kInt | kBoolean, 0.1f)                     \
  BINARY(left_shift, kInt, 0.5f)                                 \
  BINARY(right_shift, kInt, 0.5f)                                \
  TERNARY(leaky_relu_gradient, kFloat, 0.3f)                     \
  TERNARY(sgd, kFloat, 0.5f)                                     \
  TEST(signbit, kReal)                                           \
  TEST(is_nan, kFloat)                                           \
  TEST(is_finite, kFloat)                                        \
  TEST(logical_not, kBoolean)                                    \
  COMPARE(less, kOrdered)                                        \
  COMPARE(less_equal, kOrdered)                                  \
  COMPARE(greater, kOrdered)                                     \
  COMPARE(greater_equal, kOrdered)                               \
  COMPARE(logical_and, kBoolean)                                 \
  COMPARE(logical_or, kBoolean)                                  \
  COMPARE(logical_xor, kBoolean)                                 \
  COMPARE(logical_nand, kBoolean)                                \
  COMPARE(logical_nor, kBoolean)                                 \
  COMPARE(logical_xnor, kBoolean)

// The ops that make a real number of a complex one.
#define ANYMPS_COMPLEX_PARTS(PART) \
  PART(real_part)                  \
  PART(imaginary_part)             \
  PART(complex_abs)                \
  PART(absolute_square)

}  // namespace scalar

}  // namespace anymps
