// SPDX-License-Identifier: Apache-2.0
// What makes a factorization unique: signs and orders that every driver gives its results. Matrices
// are dense and row-major, in double.
#pragma once

#include <algorithm>
#include <cmath>
#include <complex>
#include <numeric>
#include <vector>

#include "base/shape.h"

namespace anymps {

struct Matrix {
  int64_t rows = 0, columns = 0;
  std::vector<double> data;

  Matrix() = default;
  Matrix(int64_t r, int64_t c) : rows(r), columns(c), data(static_cast<size_t>(r * c), 0.0) {}
  double& at(int64_t i, int64_t j) { return data[static_cast<size_t>(i * columns + j)]; }
  double at(int64_t i, int64_t j) const { return data[static_cast<size_t>(i * columns + j)]; }
  bool finite() const {
    return std::all_of(data.begin(), data.end(), [](double x) { return std::isfinite(x); });
  }
  static Matrix identity(int64_t n) {
    Matrix m(n, n);
    for (int64_t i = 0; i < n; ++i) m.at(i, i) = 1;
    return m;
  }
  Matrix transposed() const {
    Matrix t(columns, rows);
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < columns; ++j) t.at(j, i) = at(i, j);
    return t;
  }
};

// The element of column j that decides its sign: the first that is nearly the largest.
inline int64_t leading_row(const Matrix& m, int64_t j) {
  double largest = 0;
  for (int64_t i = 0; i < m.rows; ++i) largest = std::max(largest, std::abs(m.at(i, j)));
  for (int64_t i = 0; i < m.rows; ++i)
    if (std::abs(m.at(i, j)) >= largest * (1 - 1e-6)) return i;
  return 0;
}

// R gets a diagonal that is not negative.
inline void sign_qr(Matrix& q, Matrix& r) {
  for (int64_t k = 0; k < std::min(r.rows, r.columns); ++k) {
    if (!(r.at(k, k) < 0)) continue;
    for (int64_t j = 0; j < r.columns; ++j) r.at(k, j) = -r.at(k, j);
    for (int64_t i = 0; i < q.rows; ++i) q.at(i, k) = -q.at(i, k);
  }
}

// The leading element of each column of u, or of an eigenvector, is positive.
inline void sign_columns(Matrix& u, Matrix* rows_of = nullptr) {
  for (int64_t k = 0; k < u.columns; ++k) {
    if (u.rows == 0 || !(u.at(leading_row(u, k), k) < 0)) continue;
    for (int64_t i = 0; i < u.rows; ++i) u.at(i, k) = -u.at(i, k);
    if (rows_of && k < rows_of->rows)
      for (int64_t j = 0; j < rows_of->columns; ++j) rows_of->at(k, j) = -rows_of->at(k, j);
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

}  // namespace anymps
