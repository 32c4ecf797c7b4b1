// SPDX-License-Identifier: Apache-2.0
// metal_simdgroup_matrix: 8 by 8, two elements of a row in each of the 32 lanes.
#pragma once
#include "simdgroup.h"

namespace anymps_metal {

inline int matrix_row(int lane) { return (lane >> 4) * 4 + (lane >> 1 & 3); }
inline int matrix_column(int lane) { return (lane >> 3 & 1) * 4 + (lane & 1) * 2; }
inline int matrix_lane(int row, int column) {
  return (row >> 2) << 4 | (column >> 2) << 3 | (row & 3) << 1 | (column >> 1 & 1);
}

}  // namespace anymps_metal

namespace metal {

template <class T, int Columns, int Rows>
struct simdgroup_matrix {
  static_assert(Columns == 8 && Rows == 8, "a simdgroup_matrix is 8 by 8");
  vec<T, 2> elements;

  simdgroup_matrix() = default;
  explicit simdgroup_matrix(T diagonal) {
    const int lane = anymps_metal::this_lane(), row = anymps_metal::matrix_row(lane);
    for (int i = 0; i < 2; ++i)
      elements[i] = anymps_metal::matrix_column(lane) + i == row ? diagonal : T(0);
  }
  vec<T, 2>& thread_elements() { return elements; }
  const vec<T, 2>& thread_elements() const { return elements; }
};
using simdgroup_float8x8 = simdgroup_matrix<float, 8, 8>;
using simdgroup_half8x8 = simdgroup_matrix<half, 8, 8>;
using simdgroup_bfloat8x8 = simdgroup_matrix<bfloat, 8, 8>;

template <class T, int C, int R>
inline simdgroup_matrix<T, C, R> make_filled_simdgroup_matrix(T value) {
  simdgroup_matrix<T, C, R> result;
  result.elements = vec<T, 2>(value);
  return result;
}

template <class T>
inline T* simdgroup_matrix_place(T* base, ulong per_row, const vec<ulong, 2>& origin,
                                 bool transposed, int element) {
  const int lane = anymps_metal::this_lane();
  ulong row = ulong(anymps_metal::matrix_row(lane)),
        column = ulong(anymps_metal::matrix_column(lane) + element);
  if (transposed) swap(row, column);
  return base + (origin.y + row) * per_row + origin.x + column;
}
template <class T, class P>
inline void simdgroup_load(simdgroup_matrix<T, 8, 8>& into, const P* from, ulong per_row = 8,
                           vec<ulong, 2> origin = vec<ulong, 2>(0), bool transposed = false) {
  for (int i = 0; i < 2; ++i)
    into.elements[i] = *simdgroup_matrix_place(from, per_row, origin, transposed, i);
}
template <class T, class P>
inline void simdgroup_store(const simdgroup_matrix<T, 8, 8>& from, P* into, ulong per_row = 8,
                            vec<ulong, 2> origin = vec<ulong, 2>(0), bool transposed = false) {
  for (int i = 0; i < 2; ++i)
    *simdgroup_matrix_place(into, per_row, origin, transposed, i) = from.elements[i];
}

template <class D, class A, class B, class C>
inline void simdgroup_multiply_accumulate(simdgroup_matrix<D, 8, 8>& d,
                                          const simdgroup_matrix<A, 8, 8>& a,
                                          const simdgroup_matrix<B, 8, 8>& b,
                                          const simdgroup_matrix<C, 8, 8>& c, ANYMPS_LINE) {
  struct both {
    float a[2], b[2];
  };
  const both own{{float(a.elements[0]), float(a.elements[1])},
                 {float(b.elements[0]), float(b.elements[1])}};
  const anymps_metal::Simd& simd = anymps_metal::meet(own, anymps_metal::site_of(line, 24));
  const int row = anymps_metal::matrix_row(simd.lane),
            column = anymps_metal::matrix_column(simd.lane);
  float sum[2] = {float(c.elements[0]), float(c.elements[1])};
  for (int k = 0; k < 8; ++k) {
    const float factor =
        anymps_metal::brought<both>(simd, anymps_metal::matrix_lane(row, k)).a[k & 1];
    const both other = anymps_metal::brought<both>(simd, anymps_metal::matrix_lane(k, column));
    for (int i = 0; i < 2; ++i) sum[i] += factor * other.b[i];
  }
  for (int i = 0; i < 2; ++i) d.elements[i] = D(sum[i]);
}
template <class D, class A, class B>
inline void simdgroup_multiply(simdgroup_matrix<D, 8, 8>& d, const simdgroup_matrix<A, 8, 8>& a,
                               const simdgroup_matrix<B, 8, 8>& b, ANYMPS_LINE) {
  simdgroup_multiply_accumulate(d, a, b, make_filled_simdgroup_matrix<float, 8, 8>(0.0f), line);
}
template <class T>
inline simdgroup_matrix<T, 8, 8> operator*(const simdgroup_matrix<T, 8, 8>& a,
                                           const simdgroup_matrix<T, 8, 8>& b) {
  simdgroup_matrix<T, 8, 8> result;
  simdgroup_multiply(result, a, b);
  return result;
}

}  // namespace metal
