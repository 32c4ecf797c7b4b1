// SPDX-License-Identifier: Apache-2.0
// The scalar types of the Metal shading language, their traits and their limits. Nothing of the
// system's headers is included: parsing them would cost more than a whole shader, and their names
// are not Metal's.
#pragma once

typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;
typedef __SIZE_TYPE__ size_t;
typedef __PTRDIFF_TYPE__ ptrdiff_t;
typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long int64_t;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long uint64_t;
typedef __INTPTR_TYPE__ intptr_t;
typedef __UINTPTR_TYPE__ uintptr_t;

// clang 14 has half arithmetic on every x86 as __fp16, with flags that the compiler's driver is
// given.
#ifdef __FLT16_MAX__
typedef _Float16 half;
#else
typedef __fp16 half;
#endif

namespace anymps_metal {

template <bool C, class T = void>
struct enable_if {};
template <class T>
struct enable_if<true, T> {
  using type = T;
};
template <bool C, class T = void>
using enable_if_t = typename enable_if<C, T>::type;

template <bool C, class A, class B>
struct conditional {
  using type = A;
};
template <class A, class B>
struct conditional<false, A, B> {
  using type = B;
};
template <bool C, class A, class B>
using conditional_t = typename conditional<C, A, B>::type;

template <class A, class B>
inline constexpr bool same = false;
template <class A>
inline constexpr bool same<A, A> = true;
template <class T, class... U>
inline constexpr bool one_of = (same<T, U> || ...);

template <class T>
struct bare {
  using type = T;
};
template <class T>
struct bare<T&> : bare<T> {};
template <class T>
struct bare<T&&> : bare<T> {};
template <class T>
struct bare<const T> : bare<T> {};
template <class T>
struct bare<volatile T> : bare<T> {};
template <class T>
using bare_t = typename bare<T>::type;

template <class T>
inline constexpr bool is_int = one_of<T, bool, char, signed char, uchar, short, ushort, int, uint,
                                      long, ulong, long long, unsigned long long>;

template <class To, class From>
inline To bits_as(const From& from) {
  static_assert(sizeof(To) == sizeof(From), "as_type needs types of one size");
  To to;
  __builtin_memcpy(static_cast<void*>(&to), static_cast<const void*>(&from), sizeof(To));
  return to;
}

// An integer as a float that rounds to the same value of eight bits: bits far below are joined into
// one.
template <class T>
inline float float_for_rounding(T value) {
  if constexpr (sizeof(T) < 4) {
    return static_cast<float>(value);
  } else {
    const bool negative = value < T(0);
    ulong size = negative ? 0ul - static_cast<ulong>(value) : static_cast<ulong>(value);
    if (size >> 24) {
      const int shift = 40 - __builtin_clzl(size);
      const ulong rest = size & ((1ul << shift) - 1);
      size = ((size >> shift) | (rest != 0)) << shift;
    }
    return negative ? -static_cast<float>(size) : static_cast<float>(size);
  }
}

// bfloat: a float's upper half. Every operation is computed as float and rounded to nearest even.
struct bfloat {
  ushort bits;

  bfloat() = default;
  template <class T, class = enable_if_t<is_int<T> || one_of<T, float, half>>>
  constexpr bfloat(T value) : bits(0) {
    if constexpr (is_int<T>)
      bits = rounded(float_for_rounding(value));
    else
      bits = rounded(static_cast<float>(value));
  }
  constexpr operator float() const { return bits_to_float(static_cast<uint>(bits) << 16); }

  static constexpr bfloat of_bits(ushort bits) {
    bfloat result(0.0f);
    result.bits = bits;
    return result;
  }

  template <class B>
  bfloat& operator+=(const B& b) {
    return *this = bfloat(*this + b);
  }
  template <class B>
  bfloat& operator-=(const B& b) {
    return *this = bfloat(*this - b);
  }
  template <class B>
  bfloat& operator*=(const B& b) {
    return *this = bfloat(*this * b);
  }
  template <class B>
  bfloat& operator/=(const B& b) {
    return *this = bfloat(*this / b);
  }
  bfloat& operator++() { return *this += 1; }
  bfloat& operator--() { return *this -= 1; }
  bfloat operator++(int) {
    const bfloat old = *this;
    ++*this;
    return old;
  }
  bfloat operator--(int) {
    const bfloat old = *this;
    --*this;
    return old;
  }
  bfloat operator-() const { return of_bits(bits ^ 0x8000); }
  bfloat operator+() const { return *this; }

#define ANYMPS_BFLOAT_OPERATOR(op, result)                                               \
  friend result operator op(bfloat a, bfloat b) { return result(float(a) op float(b)); } \
  friend auto operator op(bfloat a, float b) { return float(a) op b; }                   \
  friend auto operator op(float a, bfloat b) { return a op float(b); }                   \
  template <class B, class = enable_if_t<is_int<B>>>                                     \
  friend result operator op(bfloat a, B b) {                                             \
    return a op bfloat(b);                                                               \
  }                                                                                      \
  template <class A, class = enable_if_t<is_int<A>>>                                     \
  friend result operator op(A a, bfloat b) {                                             \
    return bfloat(a) op b;                                                               \
  }
  ANYMPS_BFLOAT_OPERATOR(+, bfloat)
  ANYMPS_BFLOAT_OPERATOR(-, bfloat)
  ANYMPS_BFLOAT_OPERATOR(*, bfloat)
  ANYMPS_BFLOAT_OPERATOR(/, bfloat)
  ANYMPS_BFLOAT_OPERATOR(==, bool)
  ANYMPS_BFLOAT_OPERATOR(!=, bool)
  ANYMPS_BFLOAT_OPERATOR(<, bool)
  ANYMPS_BFLOAT_OPERATOR(>, bool)
  ANYMPS_BFLOAT_OPERATOR(<=, bool)
  ANYMPS_BFLOAT_OPERATOR(>=, bool)
#undef ANYMPS_BFLOAT_OPERATOR

 private:
  static constexpr float bits_to_float(uint bits) { return __builtin_bit_cast(float, bits); }
  static constexpr ushort rounded(float value) {
    const uint bits = __builtin_bit_cast(uint, value);
    if (value != value) return static_cast<ushort>((bits >> 16) | 0x40);
    return static_cast<ushort>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
  }
};

template <class T>
inline constexpr bool is_real = one_of<T, float, half, bfloat>;
template <class T>
inline constexpr bool is_number = is_int<T> || is_real<T>;

// The type in which two scalars meet: as in arithmetic, but small integers of one type stay what
// they are.
template <class A, class B>
struct common {
  using type = decltype(A() + B());
};
template <class A>
struct common<A, A> {
  using type = A;
};
template <class A, class B>
using common_t = typename common<A, B>::type;

}  // namespace anymps_metal

using anymps_metal::bfloat;
typedef bfloat bfloat16_t;

#define INFINITY (__builtin_inff())
#define HUGE_VALF (__builtin_inff())
#define HUGE_VALH (half(__builtin_inff()))
#define NAN (__builtin_nanf(""))
#define MAXFLOAT 0x1.fffffep127f
#define MAXHALF (half(65504.0f))
#define FLT_DIG 6
#define FLT_MANT_DIG 24
#define FLT_MAX_EXP 128
#define FLT_MIN_EXP (-125)
#define FLT_RADIX 2
#define FLT_MAX 0x1.fffffep127f
#define FLT_MIN 0x1p-126f
#define FLT_EPSILON 0x1p-23f
#define FLT_TRUE_MIN 0x1p-149f
#define HALF_DIG 3
#define HALF_MANT_DIG 11
#define HALF_MAX (half(65504.0f))
#define HALF_MIN (half(0x1p-14f))
#define HALF_EPSILON (half(0x1p-10f))
#define CHAR_BIT 8
#define SCHAR_MAX 127
#define SCHAR_MIN (-128)
#define CHAR_MAX SCHAR_MAX
#define CHAR_MIN SCHAR_MIN
#define UCHAR_MAX 255
#define SHRT_MAX 32767
#define SHRT_MIN (-32768)
#define USHRT_MAX 65535
#define INT_MAX 2147483647
#define INT_MIN (-2147483647 - 1)
#define UINT_MAX 4294967295u
#define LONG_MAX 9223372036854775807l
#define LONG_MIN (-9223372036854775807l - 1)
#define ULONG_MAX 18446744073709551615ul
#define M_E_F 2.71828182845904523536f
#define M_LOG2E_F 1.44269504088896340736f
#define M_LOG10E_F 0.43429448190325182765f
#define M_LN2_F 0.69314718055994530942f
#define M_LN10_F 2.30258509299404568402f
#define M_PI_F 3.14159265358979323846f
#define M_PI_2_F 1.57079632679489661923f
#define M_PI_4_F 0.78539816339744830962f
#define M_1_PI_F 0.31830988618379067154f
#define M_2_PI_F 0.63661977236758134308f
#define M_2_SQRTPI_F 1.12837916709551257390f
#define M_SQRT2_F 1.41421356237309504880f
#define M_SQRT1_2_F 0.70710678118654752440f
#define M_E_H (half(M_E_F))
#define M_LOG2E_H (half(M_LOG2E_F))
#define M_LN2_H (half(M_LN2_F))
#define M_LN10_H (half(M_LN10_F))
#define M_PI_H (half(M_PI_F))
#define M_PI_2_H (half(M_PI_2_F))
#define M_PI_4_H (half(M_PI_4_F))
#define M_1_PI_H (half(M_1_PI_F))
#define M_2_PI_H (half(M_2_PI_F))
#define M_SQRT2_H (half(M_SQRT2_F))
#define M_SQRT1_2_H (half(M_SQRT1_2_F))
