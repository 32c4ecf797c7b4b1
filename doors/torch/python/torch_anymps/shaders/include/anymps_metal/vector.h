// SPDX-License-Identifier: Apache-2.0
// Vectors of two to four components, packed vectors and swizzles. ANYMPS_SWIZZLES_2 to _4 list the
// swizzles that the shader names (X(name, how many, indices...)): all 680 of them would take longer
// to compile than the shader.
#pragma once
#include "scalar.h"

#ifndef ANYMPS_SWIZZLES_2
#define ANYMPS_SWIZZLES_2(X)
#define ANYMPS_SWIZZLES_3(X)
#define ANYMPS_SWIZZLES_4(X)
#endif

namespace anymps_metal {

template <class T, int N>
struct vec;

// Some components of a vector of N, as a value and as a place to assign to. V, the type of the
// value, is a parameter so that its operators are found for swizzles too.
template <class V, class T, int N, int... I>
struct swizzle {
  T data[N];

  operator V() const { return V(data[I]...); }
  swizzle& operator=(const V& value) {
    int from = 0;
    ((data[I] = value[from++]), ...);
    return *this;
  }
  swizzle() = default;
  swizzle(const swizzle&) = default;
  swizzle& operator=(const swizzle& other) { return *this = V(other); }
  swizzle& operator=(T value) { return *this = V(value); }
  T operator[](int at) const { return V(*this)[at]; }

#define ANYMPS_COMPOUND(Self, op)    \
  template <class B>                 \
  Self& operator op##=(const B& b) { \
    return *this = V(V(*this) op b); \
  }
  ANYMPS_COMPOUND(swizzle, +)
  ANYMPS_COMPOUND(swizzle, -)
  ANYMPS_COMPOUND(swizzle, *)
  ANYMPS_COMPOUND(swizzle, /)
  ANYMPS_COMPOUND(swizzle, %)
  ANYMPS_COMPOUND(swizzle, &)
  ANYMPS_COMPOUND(swizzle, |)
  ANYMPS_COMPOUND(swizzle, ^)
  ANYMPS_COMPOUND(swizzle, <<)
  ANYMPS_COMPOUND(swizzle, >>)
};

// The components, by index and by name.
template <class T, int N>
struct components;

#define ANYMPS_COMPONENTS_END(N)                         \
  components() = default;                                \
  components(const components&) = default;               \
  constexpr components(const T(&values)[N]) : data{} {   \
    for (int i = 0; i < N; ++i) data[i] = values[i];     \
  }                                                      \
  components& operator=(const components& other) {       \
    for (int i = 0; i < N; ++i) data[i] = other.data[i]; \
    return *this;                                        \
  }
#define ANYMPS_SWIZZLE_2(name, count, ...) swizzle<vec<T, count>, T, 2, __VA_ARGS__> name;
#define ANYMPS_SWIZZLE_3(name, count, ...) swizzle<vec<T, count>, T, 3, __VA_ARGS__> name;
#define ANYMPS_SWIZZLE_4(name, count, ...) swizzle<vec<T, count>, T, 4, __VA_ARGS__> name;

template <class T>
struct alignas(2 * sizeof(T)) components<T, 2> {
  union {
    T data[2];
    struct {
      T x, y;
    };
    struct {
      T r, g;
    };
    ANYMPS_SWIZZLES_2(ANYMPS_SWIZZLE_2)
  };
  ANYMPS_COMPONENTS_END(2)
};
template <class T>
struct alignas(4 * sizeof(T)) components<T, 3> {
  union {
    T data[3];
    struct {
      T x, y, z;
    };
    struct {
      T r, g, b;
    };
    ANYMPS_SWIZZLES_3(ANYMPS_SWIZZLE_3)
  };
  ANYMPS_COMPONENTS_END(3)
};
template <class T>
struct alignas(4 * sizeof(T)) components<T, 4> {
  union {
    T data[4];
    struct {
      T x, y, z, w;
    };
    struct {
      T r, g, b, a;
    };
    ANYMPS_SWIZZLES_4(ANYMPS_SWIZZLE_4)
  };
  ANYMPS_COMPONENTS_END(4)
};

template <class T, int N, class V = vec<T, N>>
struct packed_vec;

// What a type is to the functions of the library: a scalar (width 0), or a vector of some width.
template <class T>
struct shape {
  static constexpr int width = 0;
  using element = T;
  using value = T;
};
template <class T, int N>
struct shape<vec<T, N>> {
  static constexpr int width = N;
  using element = T;
  using value = vec<T, N>;
};
template <class V, class T, int N, int... I>
struct shape<swizzle<V, T, N, I...>> : shape<V> {};
template <class T, int N, class V>
struct shape<packed_vec<T, N, V>> : shape<V> {};

template <class A>
inline constexpr int width_of = shape<bare_t<A>>::width;
template <class A>
using element_of = typename shape<bare_t<A>>::element;
template <class A>
using value_of = typename shape<bare_t<A>>::value;
template <class A>
inline constexpr int count_of = width_of<A> == 0 ? 1 : width_of<A>;
template <class T, int N>
using vector_or_scalar =
    typename conditional<N == 0, shape<T>, shape<vec<T, N == 0 ? 2 : N>>>::type::value;

template <class T, int N>
struct vec : components<T, N> {
  using base = components<T, N>;
  using base::data;

  vec() = default;
  constexpr vec(T value) : base(splat(value)) {}
  // Scalars and shorter vectors that have N components together.
  template <class A, class B, class... More,
            class = enable_if_t<count_of<A> + count_of<B> + (0 + ... + count_of<More>) == N>>
  constexpr vec(const A& a, const B& b, const More&... more) : base(gathered(a, b, more...)) {}
  // A vector of another type: each component is converted.
  template <class A, class = enable_if_t<width_of<A> == N && !same<element_of<A>, T>>>
  explicit constexpr vec(const A& other) : base(converted(value_of<A>(other))) {}

  constexpr T& operator[](int at) { return data[at]; }
  constexpr const T& operator[](int at) const { return data[at]; }

#define ANYMPS_OPERATOR(op)                                            \
  friend vec operator op(const vec& a, const vec& b) {                 \
    vec r;                                                             \
    for (int i = 0; i < N; ++i) r.data[i] = T(a.data[i] op b.data[i]); \
    return r;                                                          \
  }                                                                    \
  friend vec operator op(const vec& a, T b) { return a op vec(b); }    \
  friend vec operator op(T a, const vec& b) { return vec(a) op b; }    \
  template <class B>                                                   \
  vec& operator op##=(const B& b) {                                    \
    return *this = *this op b;                                         \
  }
  ANYMPS_OPERATOR(+)
  ANYMPS_OPERATOR(-)
  ANYMPS_OPERATOR(*)
  ANYMPS_OPERATOR(/)
  ANYMPS_OPERATOR(%)
  ANYMPS_OPERATOR(&)
  ANYMPS_OPERATOR(|)
  ANYMPS_OPERATOR(^)
  ANYMPS_OPERATOR(<<)
  ANYMPS_OPERATOR(>>)
#define ANYMPS_COMPARISON(op)                                                \
  friend vec<bool, N> operator op(const vec& a, const vec& b) {              \
    vec<bool, N> r;                                                          \
    for (int i = 0; i < N; ++i) r.data[i] = a.data[i] op b.data[i];          \
    return r;                                                                \
  }                                                                          \
  friend vec<bool, N> operator op(const vec& a, T b) { return a op vec(b); } \
  friend vec<bool, N> operator op(T a, const vec& b) { return vec(a) op b; }
  ANYMPS_COMPARISON(==)
  ANYMPS_COMPARISON(!=)
  ANYMPS_COMPARISON(<)
  ANYMPS_COMPARISON(>)
  ANYMPS_COMPARISON(<=)
  ANYMPS_COMPARISON(>=)
  ANYMPS_COMPARISON(&&)
  ANYMPS_COMPARISON(||)

  friend vec operator-(const vec& a) {
    vec r;
    for (int i = 0; i < N; ++i) r.data[i] = T(-a.data[i]);
    return r;
  }
  friend vec operator+(const vec& a) { return a; }
  friend vec operator~(const vec& a) {
    vec r;
    for (int i = 0; i < N; ++i) r.data[i] = T(~a.data[i]);
    return r;
  }
  friend vec<bool, N> operator!(const vec& a) { return a == vec(T(0)); }
  vec& operator++() { return *this += T(1); }
  vec& operator--() { return *this -= T(1); }
  vec operator++(int) {
    const vec old = *this;
    ++*this;
    return old;
  }
  vec operator--(int) {
    const vec old = *this;
    --*this;
    return old;
  }

 private:
  static constexpr base splat(T value) {
    T values[N] = {};
    for (int i = 0; i < N; ++i) values[i] = value;
    return base(values);
  }
  template <class V>
  static constexpr base converted(const V& other) {
    T values[N] = {};
    for (int i = 0; i < N; ++i) values[i] = static_cast<T>(other.data[i]);
    return base(values);
  }
  template <class A>
  static constexpr void put(T* values, int& at, const A& a) {
    if constexpr (width_of<A> == 0) {
      values[at++] = static_cast<T>(a);
    } else {
      const value_of<A> from = a;
      for (int i = 0; i < width_of<A>; ++i) values[at++] = static_cast<T>(from.data[i]);
    }
  }
  template <class... A>
  static constexpr base gathered(const A&... a) {
    T values[N] = {};
    int at = 0;
    (put(values, at, a), ...);
    return base(values);
  }
};

// As it lies in memory without padding.
template <class T, int N>
struct packed_components;
template <class T>
struct packed_components<T, 2> {
  T x, y;
};
template <class T>
struct packed_components<T, 3> {
  T x, y, z;
};
template <class T>
struct packed_components<T, 4> {
  T x, y, z, w;
};
template <class T, int N, class V>
struct packed_vec : packed_components<T, N> {
  packed_vec() = default;
  packed_vec(const V& value) {
    for (int i = 0; i < N; ++i) (*this)[i] = value[i];
  }
  packed_vec(T value) : packed_vec(V(value)) {}
  template <class A, class B, class... More>
  packed_vec(const A& a, const B& b, const More&... more) : packed_vec(V(a, b, more...)) {}
  operator V() const {
    V r;
    for (int i = 0; i < N; ++i) r[i] = (*this)[i];
    return r;
  }
  T& operator[](int at) { return (&this->x)[at]; }
  const T& operator[](int at) const { return (&this->x)[at]; }
  ANYMPS_COMPOUND(packed_vec, +)
  ANYMPS_COMPOUND(packed_vec, -)
  ANYMPS_COMPOUND(packed_vec, *)
  ANYMPS_COMPOUND(packed_vec, /)
};

}  // namespace anymps_metal

#define ANYMPS_VECTORS(T, name)                            \
  typedef anymps_metal::vec<T, 2> name##2;                 \
  typedef anymps_metal::vec<T, 3> name##3;                 \
  typedef anymps_metal::vec<T, 4> name##4;                 \
  typedef anymps_metal::packed_vec<T, 2> packed_##name##2; \
  typedef anymps_metal::packed_vec<T, 3> packed_##name##3; \
  typedef anymps_metal::packed_vec<T, 4> packed_##name##4; \
  namespace metal {                                        \
  using ::name##2;                                         \
  using ::name##3;                                         \
  using ::name##4;                                         \
  using ::packed_##name##2;                                \
  using ::packed_##name##3;                                \
  using ::packed_##name##4;                                \
  }
ANYMPS_VECTORS(bool, bool)
ANYMPS_VECTORS(char, char)
ANYMPS_VECTORS(uchar, uchar)
ANYMPS_VECTORS(short, short)
ANYMPS_VECTORS(ushort, ushort)
ANYMPS_VECTORS(int, int)
ANYMPS_VECTORS(uint, uint)
ANYMPS_VECTORS(long, long)
ANYMPS_VECTORS(ulong, ulong)
ANYMPS_VECTORS(half, half)
ANYMPS_VECTORS(bfloat, bfloat)
ANYMPS_VECTORS(float, float)

namespace metal {
using ::bfloat;
using ::half;
using ::uchar;
using ::uint;
using ::ulong;
using ::ushort;
using anymps_metal::packed_vec;
using anymps_metal::vec;
}  // namespace metal

template <class To, class From>
inline To as_type(const From& from) {
  return anymps_metal::bits_as<To>(anymps_metal::value_of<From>(from));
}
namespace metal {
using ::as_type;
}
