// SPDX-License-Identifier: Apache-2.0
// What makes a factorization unique: signs and orders that every driver gives its results. Matrices
// are dense, of double or of complex double.
#pragma once

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <numeric>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/shape.h"

namespace anymps {

inline double conjugate(double x) { return x; }
inline std::complex<double> conjugate(const std::complex<double>& x) { return std::conj(x); }
// By which LAPACK compares elements when it looks for a pivot.
inline double pivot_size(double x) { return std::abs(x); }
inline double pivot_size(const std::complex<double>& x) {
  return std::abs(x.real()) + std::abs(x.imag());
}
inline bool is_finite(double x) { return std::isfinite(x); }
inline bool is_finite(const std::complex<double>& x) {
  return std::isfinite(x.real()) && std::isfinite(x.imag());
}

template <typename A, bool by_columns = false>
struct MatrixOf {
  int64_t rows = 0, columns = 0;
  std::vector<A> data;

  MatrixOf() = default;
  MatrixOf(int64_t r, int64_t c) { resize(r, c); }
  void resize(int64_t r, int64_t c) {
    rows = r;
    columns = c;
    data.assign(r * c, A(0));
  }
  size_t place(int64_t i, int64_t j) const { return by_columns ? j * rows + i : i * columns + j; }
  A& at(int64_t i, int64_t j) { return data[place(i, j)]; }
  const A& at(int64_t i, int64_t j) const { return data[place(i, j)]; }
  bool finite() const {
    return std::all_of(data.begin(), data.end(), [](const A& x) { return is_finite(x); });
  }
  void fill(const A& value) { std::fill(data.begin(), data.end(), value); }
  static MatrixOf identity(int64_t n) {
    MatrixOf m(n, n);
    for (int64_t i = 0; i < n; ++i) m.at(i, i) = 1;
    return m;
  }
  MatrixOf transposed() const {
    MatrixOf t(columns, rows);
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < columns; ++j) t.at(j, i) = at(i, j);
    return t;
  }
  MatrixOf adjoint() const {
    MatrixOf t = transposed();
    for (A& x : t.data) x = conjugate(x);
    return t;
  }
  MatrixOf cut(int64_t r, int64_t c) const {  // the first rows and columns
    MatrixOf part(r, c);
    for (int64_t i = 0; i < r; ++i)
      for (int64_t j = 0; j < c; ++j) part.at(i, j) = at(i, j);
    return part;
  }
  void keep_triangle(bool upper) {
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < columns; ++j)
        if (upper ? i > j : i < j) at(i, j) = 0;
  }
};
using Matrix = MatrixOf<double>;
using ComplexMatrix = MatrixOf<std::complex<double>>;

// The distance from 1 to the next number of the dtype that matrices are given in.
inline double real_precision(DType dtype) {
  return real_dtype(dtype) == DType::kF32
             ? static_cast<double>(std::numeric_limits<float>::epsilon())
             : std::numeric_limits<double>::epsilon();
}

// What is left of results that were not reached.
inline constexpr double kNoResult = std::numeric_limits<double>::quiet_NaN();

// The element of column j that decides its sign: the first that is nearly the largest.
template <typename M>
int64_t leading_row(const M& m, int64_t j) {
  double largest = 0;
  for (int64_t i = 0; i < m.rows; ++i) largest = std::max(largest, std::abs(m.at(i, j)));
  for (int64_t i = 0; i < m.rows; ++i)
    if (std::abs(m.at(i, j)) >= largest * (1 - 1e-6)) return i;
  return 0;
}

// The sign of a number, or its direction; 1 for 0 and NaN.
template <typename A>
A direction(const A& x) {
  const double size = std::abs(x);
  return size > 0 ? x / size : A(1);
}

// R gets a diagonal that is real and not negative.
template <typename M>
void sign_qr(M& q, M& r) {
  for (int64_t k = 0; k < std::min(r.rows, r.columns); ++k) {
    const auto turn = direction(r.at(k, k));
    if (turn == 1.0) continue;
    for (int64_t j = 0; j < r.columns; ++j) r.at(k, j) *= conjugate(turn);
    for (int64_t i = 0; i < q.rows; ++i) q.at(i, k) *= turn;
  }
}

// The leading element of each column of u, or of an eigenvector, is real and positive.
template <typename M>
void sign_columns(M& u, M* rows_of = nullptr) {
  for (int64_t k = 0; k < u.columns && u.rows > 0; ++k) {
    const auto turn = direction(u.at(leading_row(u, k), k));
    if (turn == 1.0) continue;
    for (int64_t i = 0; i < u.rows; ++i) u.at(i, k) *= conjugate(turn);
    if (rows_of && k < rows_of->rows)
      for (int64_t j = 0; j < rows_of->columns; ++j) rows_of->at(k, j) *= turn;
  }
}

using ComplexVector = std::vector<std::complex<double>>;

// Eigenvalues by rising real, then imaginary parts (equal but for rounding counts as equal);
// eigenvectors, columns of v, of norm 1 with a leading element that is real and positive.
inline void order_eig(ComplexVector& w, ComplexVector& v) {
  const size_t n = w.size();
  double largest = 0;
  for (const auto& value : w) largest = std::max(largest, std::abs(value));
  const double step = largest * 1e-9 + 1e-300;
  std::vector<size_t> order(n);
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    const double x = std::round(w[a].real() / step), y = std::round(w[b].real() / step);
    return x != y ? x < y : w[a].imag() < w[b].imag();
  });
  ComplexVector values(n), vectors(v.size());
  for (size_t k = 0; k < n; ++k) {
    values[k] = w[order[k]];
    if (v.empty()) continue;  // only the values are asked for
    double norm = 0, most = 0;
    for (size_t i = 0; i < n; ++i) norm += std::norm(v[i * n + order[k]]);
    for (size_t i = 0; i < n; ++i) most = std::max(most, std::abs(v[i * n + order[k]]));
    std::complex<double> turn = 1;
    for (size_t i = 0; i < n; ++i)
      if (const auto& x = v[i * n + order[k]]; std::abs(x) >= most * (1 - 1e-6)) {
        if (most > 0) turn = std::conj(x) / std::abs(x);
        break;
      }
    for (size_t i = 0; i < n; ++i)
      vectors[i * n + k] = v[i * n + order[k]] * turn / (norm > 0 ? std::sqrt(norm) : 1);
  }
  w = std::move(values);
  v = std::move(vectors);
}

// Halves a matrix until its norm, the largest sum of a column, is not above `bound`; returns how
// often. Its exponential is then squared as often.
template <typename A, bool by_columns>
int halve_below(MatrixOf<A, by_columns>& x, double bound) {
  double norm = 0;
  for (int64_t j = 0; j < x.columns; ++j) {
    double sum = 0;
    for (int64_t i = 0; i < x.rows; ++i) sum += std::abs(x.at(i, j));
    norm = std::max(norm, sum);
  }
  int halvings = 0;
  while (std::ldexp(norm, -halvings) > bound) ++halvings;
  for (A& value : x.data) value *= std::ldexp(1.0, -halvings);
  return halvings;
}

}  // namespace anymps
