// SPDX-License-Identifier: Apache-2.0
// metal_geometric and metal_matrix.
#pragma once
#include "math.h"

namespace metal {

template <class A, class B, class = enable_if_t<(anymps_metal::widest<A, B> > 0)>>
inline auto dot(const A& a, const B& b) {
  using R = anymps_metal::element_type<A, B>;
  const anymps_metal::value_of<A> x = a;
  const anymps_metal::value_of<B> y = b;
  R sum = R(x[0] * y[0]);
  for (int i = 1; i < anymps_metal::width_of<A>; ++i) sum = R(sum + x[i] * y[i]);
  return sum;
}
template <class A>
inline auto length_squared(const A& a) {
  return dot(a, a);
}
template <class A>
inline auto length(const A& a) {
  return sqrt(dot(a, a));
}
template <class A, class B>
inline auto distance(const A& a, const B& b) {
  return length(a - b);
}
template <class A, class B>
inline auto distance_squared(const A& a, const B& b) {
  return length_squared(a - b);
}
template <class A>
inline auto normalize(const A& a) {
  return a * rsqrt(dot(a, a));
}
template <class A, class B>
inline anymps_metal::value_of<A> cross(const A& a, const B& b) {
  const anymps_metal::value_of<A> x = a, y = b;
  return {x[1] * y[2] - x[2] * y[1], x[2] * y[0] - x[0] * y[2], x[0] * y[1] - x[1] * y[0]};
}
template <class N, class I, class R>
inline anymps_metal::value_of<N> faceforward(const N& n, const I& i, const R& reference) {
  const anymps_metal::value_of<N> value = n;
  return dot(reference, i) < 0 ? value : -value;
}
template <class I, class N>
inline auto reflect(const I& i, const N& n) {
  return i - n * (2 * dot(n, i));
}
template <class I, class N, class E>
inline anymps_metal::value_of<I> refract(const I& i, const N& n, const E& ratio) {
  using T = anymps_metal::element_of<I>;
  const T eta = T(ratio);
  const T cosine = dot(n, i);
  const T k = T(1) - eta * eta * (T(1) - cosine * cosine);
  if (k < T(0)) return anymps_metal::value_of<I>(T(0));
  return eta * i - (eta * cosine + sqrt(k)) * n;
}

}  // namespace metal

namespace anymps_metal {

// C columns of R components each.
template <class T, int C, int R>
struct matrix {
  vec<T, R> columns[C];

  matrix() = default;
  explicit matrix(T diagonal) {
    for (int c = 0; c < C; ++c)
      for (int r = 0; r < R; ++r) columns[c][r] = c == r ? diagonal : T(0);
  }
  template <class... A, class = enable_if_t<sizeof...(A) == C && ((width_of<A> == R) && ...)>>
  matrix(const A&... a) : columns{vec<T, R>(a)...} {}
  template <class... A, class = void,
            class = enable_if_t<sizeof...(A) == C * R && ((width_of<A> == 0) && ...)>>
  matrix(const A&... a) {
    const T values[] = {T(a)...};
    for (int c = 0; c < C; ++c)
      for (int r = 0; r < R; ++r) columns[c][r] = values[c * R + r];
  }
  template <class U, class = enable_if_t<!same<T, U>>>
  explicit matrix(const matrix<U, C, R>& other) {
    for (int c = 0; c < C; ++c) columns[c] = vec<T, R>(other.columns[c]);
  }

  vec<T, R>& operator[](int at) { return columns[at]; }
  const vec<T, R>& operator[](int at) const { return columns[at]; }

  friend matrix operator+(const matrix& a, const matrix& b) {
    matrix r;
    for (int c = 0; c < C; ++c) r.columns[c] = a.columns[c] + b.columns[c];
    return r;
  }
  friend matrix operator-(const matrix& a, const matrix& b) {
    matrix r;
    for (int c = 0; c < C; ++c) r.columns[c] = a.columns[c] - b.columns[c];
    return r;
  }
  friend matrix operator-(const matrix& a) { return a * T(-1); }
  friend matrix operator*(const matrix& a, T b) {
    matrix r;
    for (int c = 0; c < C; ++c) r.columns[c] = a.columns[c] * b;
    return r;
  }
  friend matrix operator*(T a, const matrix& b) { return b * a; }
  friend vec<T, R> operator*(const matrix& a, const vec<T, C>& b) {
    vec<T, R> r = a.columns[0] * b[0];
    for (int c = 1; c < C; ++c) r += a.columns[c] * b[c];
    return r;
  }
  friend vec<T, C> operator*(const vec<T, R>& a, const matrix& b) {
    vec<T, C> r;
    for (int c = 0; c < C; ++c) r[c] = metal::dot(a, b.columns[c]);
    return r;
  }
  matrix& operator+=(const matrix& b) { return *this = *this + b; }
  matrix& operator-=(const matrix& b) { return *this = *this - b; }
  template <class B>
  matrix& operator*=(const B& b) {
    return *this = *this * b;
  }
  friend bool operator==(const matrix& a, const matrix& b) {
    for (int c = 0; c < C; ++c)
      if (!metal::all(a.columns[c] == b.columns[c])) return false;
    return true;
  }
  friend bool operator!=(const matrix& a, const matrix& b) { return !(a == b); }
};

template <class T, int K, int R, int C>
inline matrix<T, C, R> operator*(const matrix<T, K, R>& a, const matrix<T, C, K>& b) {
  matrix<T, C, R> r;
  for (int c = 0; c < C; ++c) r.columns[c] = a * b.columns[c];
  return r;
}

}  // namespace anymps_metal

namespace metal {

using anymps_metal::matrix;

template <class T, int C, int R>
inline matrix<T, R, C> transpose(const matrix<T, C, R>& a) {
  matrix<T, R, C> r;
  for (int i = 0; i < C; ++i)
    for (int j = 0; j < R; ++j) r[j][i] = a[i][j];
  return r;
}
template <class T>
inline T determinant(const matrix<T, 2, 2>& a) {
  return a[0][0] * a[1][1] - a[1][0] * a[0][1];
}
template <class T>
inline T determinant(const matrix<T, 3, 3>& a) {
  return dot(a[0], cross(a[1], a[2]));
}
template <class T>
inline T determinant(const matrix<T, 4, 4>& a) {
  T sum = T(0);
  for (int c = 0; c < 4; ++c) {
    matrix<T, 3, 3> minor;
    for (int i = 0, at = 0; i < 4; ++i) {
      if (i == c) continue;
      for (int r = 1; r < 4; ++r) minor[at][r - 1] = a[i][r];
      ++at;
    }
    sum += (c % 2 == 0 ? T(1) : T(-1)) * a[c][0] * determinant(minor);
  }
  return sum;
}

}  // namespace metal

#define ANYMPS_MATRICES(T)                      \
  typedef anymps_metal::matrix<T, 2, 2> T##2x2; \
  typedef anymps_metal::matrix<T, 2, 3> T##2x3; \
  typedef anymps_metal::matrix<T, 2, 4> T##2x4; \
  typedef anymps_metal::matrix<T, 3, 2> T##3x2; \
  typedef anymps_metal::matrix<T, 3, 3> T##3x3; \
  typedef anymps_metal::matrix<T, 3, 4> T##3x4; \
  typedef anymps_metal::matrix<T, 4, 2> T##4x2; \
  typedef anymps_metal::matrix<T, 4, 3> T##4x3; \
  typedef anymps_metal::matrix<T, 4, 4> T##4x4;
ANYMPS_MATRICES(half)
ANYMPS_MATRICES(float)
ANYMPS_MATRICES(bfloat)
