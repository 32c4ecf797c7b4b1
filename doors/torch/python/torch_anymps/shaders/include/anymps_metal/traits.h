// SPDX-License-Identifier: Apache-2.0
// metal_type_traits, metal_limits, metal_utility and metal_array.
#pragma once
#include "vector.h"

namespace metal {

using anymps_metal::conditional;
using anymps_metal::conditional_t;
using anymps_metal::enable_if;
using anymps_metal::enable_if_t;

template <class T, T V>
struct integral_constant {
  static constexpr T value = V;
  using value_type = T;
  using type = integral_constant;
  constexpr operator T() const { return V; }
  constexpr T operator()() const { return V; }
};
template <bool V>
using bool_constant = integral_constant<bool, V>;
using true_type = bool_constant<true>;
using false_type = bool_constant<false>;

template <class...>
using void_t = void;

template <class T>
struct remove_reference {
  using type = T;
};
template <class T>
struct remove_reference<T&> {
  using type = T;
};
template <class T>
struct remove_reference<T&&> {
  using type = T;
};
template <class T>
using remove_reference_t = typename remove_reference<T>::type;
template <class T>
struct remove_const {
  using type = T;
};
template <class T>
struct remove_const<const T> {
  using type = T;
};
template <class T>
using remove_const_t = typename remove_const<T>::type;
template <class T>
struct remove_volatile {
  using type = T;
};
template <class T>
struct remove_volatile<volatile T> {
  using type = T;
};
template <class T>
using remove_volatile_t = typename remove_volatile<T>::type;
template <class T>
struct remove_cv {
  using type = remove_const_t<remove_volatile_t<T>>;
};
template <class T>
using remove_cv_t = typename remove_cv<T>::type;
template <class T>
using remove_cvref_t = remove_cv_t<remove_reference_t<T>>;
// Address spaces are one here, so that nothing is left to remove.
template <class T>
using remove_address_space_t = T;
template <class T>
struct remove_pointer {
  using type = T;
};
template <class T>
struct remove_pointer<T*> {
  using type = T;
};
template <class T>
using remove_pointer_t = typename remove_pointer<T>::type;
template <class T>
struct remove_extent {
  using type = T;
};
template <class T, size_t N>
struct remove_extent<T[N]> {
  using type = T;
};
template <class T>
using remove_extent_t = typename remove_extent<T>::type;
template <class T>
struct decay {
  using type = remove_cv_t<remove_reference_t<T>>;
};
template <class T>
using decay_t = typename decay<T>::type;
template <class T>
struct add_const {
  using type = const T;
};

template <class T>
T&& declval() noexcept;

#define ANYMPS_TRAIT(name, ...)                 \
  template <class T>                            \
  inline constexpr bool name##_v = __VA_ARGS__; \
  template <class T>                            \
  struct name : bool_constant<name##_v<T>> {};
ANYMPS_TRAIT(is_void, anymps_metal::same<remove_cv_t<T>, void>)
ANYMPS_TRAIT(is_integral, anymps_metal::is_int<remove_cv_t<anymps_metal::element_of<T>>>)
ANYMPS_TRAIT(is_floating_point, anymps_metal::is_real<remove_cv_t<anymps_metal::element_of<T>>>)
ANYMPS_TRAIT(is_arithmetic, is_integral_v<T> || is_floating_point_v<T>)
ANYMPS_TRAIT(is_vector, anymps_metal::width_of<T> != 0)
ANYMPS_TRAIT(is_scalar, anymps_metal::is_number<remove_cv_t<T>> || __is_enum(T))
ANYMPS_TRAIT(is_unsigned,
             is_integral_v<T>&& anymps_metal::element_of<T>(-1) > anymps_metal::element_of<T>(0))
ANYMPS_TRAIT(is_signed, is_arithmetic_v<T> && !is_unsigned_v<T>)
ANYMPS_TRAIT(is_enum, __is_enum(T))
ANYMPS_TRAIT(is_class, __is_class(T))
ANYMPS_TRAIT(is_union, __is_union(T))
ANYMPS_TRAIT(is_pointer, !anymps_metal::same<remove_pointer_t<remove_cv_t<T>>, remove_cv_t<T>>)
ANYMPS_TRAIT(is_reference, !anymps_metal::same<remove_reference_t<T>, T>)
ANYMPS_TRAIT(is_const, !anymps_metal::same<remove_const_t<T>, T>)
ANYMPS_TRAIT(is_array, !anymps_metal::same<remove_extent_t<T>, T>)
ANYMPS_TRAIT(is_empty, __is_empty(T))
ANYMPS_TRAIT(is_trivially_copyable, __is_trivially_copyable(T))

template <class A, class B>
inline constexpr bool is_same_v = anymps_metal::same<A, B>;
template <class A, class B>
struct is_same : bool_constant<is_same_v<A, B>> {};
template <class A, class B>
inline constexpr bool is_base_of_v = __is_base_of(A, B);
template <class A, class B>
struct is_base_of : bool_constant<is_base_of_v<A, B>> {};

template <class From, class To, class = void>
struct is_convertible : false_type {};
template <class From, class To>
struct is_convertible<From, To, void_t<decltype(declval<void (&)(To)>()(declval<From>()))>>
    : true_type {};
template <class From, class To>
inline constexpr bool is_convertible_v = is_convertible<From, To>::value;

template <class T>
struct make_unsigned {
  using type = conditional_t<
      sizeof(T) == 1, uchar,
      conditional_t<sizeof(T) == 2, ushort, conditional_t<sizeof(T) == 4, uint, ulong>>>;
};
template <class T, int N>
struct make_unsigned<vec<T, N>> {
  using type = vec<typename make_unsigned<T>::type, N>;
};
template <class T>
using make_unsigned_t = typename make_unsigned<T>::type;
template <class T>
struct make_signed {
  using type =
      conditional_t<sizeof(T) == 1, char,
                    conditional_t<sizeof(T) == 2, short, conditional_t<sizeof(T) == 4, int, long>>>;
};
template <class T, int N>
struct make_signed<vec<T, N>> {
  using type = vec<typename make_signed<T>::type, N>;
};
template <class T>
using make_signed_t = typename make_signed<T>::type;

template <class... T>
struct common_type;
template <class T>
struct common_type<T> {
  using type = T;
};
template <class A, class B, class... More>
struct common_type<A, B, More...> : common_type<anymps_metal::common_t<A, B>, More...> {};
template <class... T>
using common_type_t = typename common_type<T...>::type;

template <class T>
constexpr remove_reference_t<T>&& move(T&& value) {
  return static_cast<remove_reference_t<T>&&>(value);
}
template <class T>
constexpr T&& forward(remove_reference_t<T>& value) {
  return static_cast<T&&>(value);
}
template <class T>
constexpr T* addressof(T& value) {
  return __builtin_addressof(value);
}
template <class T>
inline void swap(T& a, T& b) {
  const T old = a;
  a = b;
  b = old;
}

template <class T>
struct numeric_limits {
  static constexpr bool is_specialized = false;
};
template <class T>
struct numeric_limits<const T> : numeric_limits<T> {};
#define ANYMPS_INT_LIMITS(T, low, high)                      \
  template <>                                                \
  struct numeric_limits<T> {                                 \
    static constexpr bool is_specialized = true;             \
    static constexpr bool is_integer = true;                 \
    static constexpr bool is_exact = true;                   \
    static constexpr bool is_signed = is_signed_v<T>;        \
    static constexpr bool has_infinity = false;              \
    static constexpr bool has_quiet_NaN = false;             \
    static constexpr int radix = 2;                          \
    static constexpr int digits = sizeof(T) * 8 - is_signed; \
    static constexpr T min() { return low; }                 \
    static constexpr T lowest() { return low; }              \
    static constexpr T max() { return high; }                \
    static constexpr T epsilon() { return 0; }               \
    static constexpr T infinity() { return 0; }              \
    static constexpr T quiet_NaN() { return 0; }             \
  };
ANYMPS_INT_LIMITS(bool, false, true)
ANYMPS_INT_LIMITS(char, SCHAR_MIN, SCHAR_MAX)
ANYMPS_INT_LIMITS(signed char, SCHAR_MIN, SCHAR_MAX)
ANYMPS_INT_LIMITS(uchar, 0, UCHAR_MAX)
ANYMPS_INT_LIMITS(short, SHRT_MIN, SHRT_MAX)
ANYMPS_INT_LIMITS(ushort, 0, USHRT_MAX)
ANYMPS_INT_LIMITS(int, INT_MIN, INT_MAX)
ANYMPS_INT_LIMITS(uint, 0, UINT_MAX)
ANYMPS_INT_LIMITS(long, LONG_MIN, LONG_MAX)
ANYMPS_INT_LIMITS(ulong, 0, ULONG_MAX)
#define ANYMPS_REAL_LIMITS(T, mantissa, least_exponent, most_exponent, tiny, low, high, step, \
                           denormal)                                                          \
  template <>                                                                                 \
  struct numeric_limits<T> {                                                                  \
    static constexpr bool is_specialized = true;                                              \
    static constexpr bool is_integer = false;                                                 \
    static constexpr bool is_exact = false;                                                   \
    static constexpr bool is_signed = true;                                                   \
    static constexpr bool has_infinity = true;                                                \
    static constexpr bool has_quiet_NaN = true;                                               \
    static constexpr int radix = 2;                                                           \
    static constexpr int digits = mantissa;                                                   \
    static constexpr int min_exponent = least_exponent;                                       \
    static constexpr int max_exponent = most_exponent;                                        \
    static constexpr T min() { return T(tiny); }                                              \
    static constexpr T lowest() { return T(low); }                                            \
    static constexpr T max() { return T(high); }                                              \
    static constexpr T epsilon() { return T(step); }                                          \
    static constexpr T denorm_min() { return T(denormal); }                                   \
    static constexpr T infinity() { return T(__builtin_inff()); }                             \
    static constexpr T quiet_NaN() { return T(__builtin_nanf("")); }                          \
    static constexpr T signaling_NaN() { return T(__builtin_nanf("")); }                      \
    static constexpr T round_error() { return T(0.5f); }                                      \
  };
ANYMPS_REAL_LIMITS(float, 24, -125, 128, FLT_MIN, -FLT_MAX, FLT_MAX, FLT_EPSILON, FLT_TRUE_MIN)
ANYMPS_REAL_LIMITS(half, 11, -13, 16, 0x1p-14f, -65504.0f, 65504.0f, 0x1p-10f, 0x1p-24f)
ANYMPS_REAL_LIMITS(bfloat, 8, -125, 128, 0x1p-126f, -0x1.fep127f, 0x1.fep127f, 0x1p-7f, 0x1p-133f)

template <class T, size_t N>
struct array {
  T items[N];

  constexpr T& operator[](size_t at) { return items[at]; }
  constexpr const T& operator[](size_t at) const { return items[at]; }
  constexpr size_t size() const { return N; }
  constexpr bool empty() const { return N == 0; }
  constexpr T* data() { return items; }
  constexpr const T* data() const { return items; }
  constexpr T* begin() { return items; }
  constexpr T* end() { return items + N; }
  constexpr const T* begin() const { return items; }
  constexpr const T* end() const { return items + N; }
  void fill(const T& value) {
    for (auto& item : items) item = value;
  }
};

}  // namespace metal
