// SPDX-License-Identifier: Apache-2.0
// Eigenvalues of any matrix by the shifted QR iteration in complex numbers, and eigenvectors by
// inverse iteration.
#pragma once

#include "base/error.h"
#include "semantics/factors.h"

namespace anymps {

namespace eig_detail {

using C = std::complex<double>;

// One step of QR with Gram-Schmidt on the leading n x n part: a - shift = q r, a = r q + shift.
inline void qr_step(std::vector<C>& a, size_t width, size_t n, C shift) {
  std::vector<C> q(n * n), r(n * n);
  for (size_t j = 0; j < n; ++j) {
    std::vector<C> column(n);
    for (size_t i = 0; i < n; ++i) column[i] = a[i * width + j] - (i == j ? shift : C(0));
    for (int again = 0; again < 2; ++again)
      for (size_t k = 0; k < j; ++k) {
        C dot = 0;
        for (size_t i = 0; i < n; ++i) dot += std::conj(q[i * n + k]) * column[i];
        r[k * n + j] += dot;
        for (size_t i = 0; i < n; ++i) column[i] -= dot * q[i * n + k];
      }
    double norm = 0;
    for (const C& x : column) norm += std::norm(x);
    norm = std::sqrt(norm);
    r[j * n + j] = norm;
    for (size_t i = 0; i < n; ++i) q[i * n + j] = norm > 0 ? column[i] / norm : C(0);
  }
  for (size_t i = 0; i < n; ++i)
    for (size_t j = 0; j < n; ++j) {
      C sum = i == j ? shift : C(0);
      for (size_t k = i; k < n; ++k) sum += r[i * n + k] * q[k * n + j];
      a[i * width + j] = sum;
    }
}

inline ComplexVector eigenvalues(const ComplexMatrix& m) {
  const size_t width = m.rows;
  std::vector<C> a(m.data.begin(), m.data.end());
  double scale = 0;
  for (const C& x : a) scale = std::max(scale, std::abs(x));
  ComplexVector w(width);
  size_t n = width;
  for (int steps = 0; n > 0; ++steps) {
    require(steps < 20000, "[eig] the iteration does not converge");
    double below = 0;
    for (size_t j = 0; j + 1 < n; ++j) below += std::abs(a[(n - 1) * width + j]);
    if (below <= scale * 1e-15 || n == 1) {
      w[n - 1] = a[(n - 1) * width + n - 1];
      --n;
      continue;
    }
    const C p = a[(n - 2) * width + n - 2], q = a[(n - 2) * width + n - 1],
            r = a[(n - 1) * width + n - 2], s = a[(n - 1) * width + n - 1];
    const C half = (p - s) / 2.0, root = std::sqrt(half * half + q * r);
    const C mean = (p + s) / 2.0, one = mean + root, two = mean - root;
    C shift = std::abs(one - s) < std::abs(two - s) ? one : two;
    if (steps % 11 == 10) shift += C(below, below / 3);  // out of a cycle
    qr_step(a, width, n, shift);
  }
  return w;
}

// Solves (a - value) y = x in place, by elimination; tiny pivots are lifted.
inline void solve_shifted(const ComplexMatrix& m, C value, std::vector<C>& x, double tiny) {
  const size_t n = m.rows;
  std::vector<C> a(m.data.begin(), m.data.end());
  for (size_t i = 0; i < n; ++i) a[i * n + i] -= value;
  for (size_t k = 0; k < n; ++k) {
    size_t pivot = k;
    for (size_t i = k + 1; i < n; ++i)
      if (std::abs(a[i * n + k]) > std::abs(a[pivot * n + k])) pivot = i;
    if (pivot != k) {
      for (size_t j = 0; j < n; ++j) std::swap(a[k * n + j], a[pivot * n + j]);
      std::swap(x[k], x[pivot]);
    }
    if (std::abs(a[k * n + k]) < tiny) a[k * n + k] = tiny;
    for (size_t i = k + 1; i < n; ++i) {
      const C factor = a[i * n + k] / a[k * n + k];
      for (size_t j = k; j < n; ++j) a[i * n + j] -= factor * a[k * n + j];
      x[i] -= factor * x[k];
    }
  }
  for (size_t i = n; i-- > 0;) {
    for (size_t k = i + 1; k < n; ++k) x[i] -= a[i * n + k] * x[k];
    x[i] /= a[i * n + i];
  }
}

}  // namespace eig_detail

// w: the eigenvalues, v: the eigenvectors as columns, in any order and of any length.
inline void eigen_decompose(const ComplexMatrix& a, ComplexVector& w, ComplexVector& v) {
  const size_t n = a.rows;
  w = eig_detail::eigenvalues(a);
  v.assign(n * n, 0);
  double scale = 1e-300;
  for (const auto& x : a.data) scale = std::max(scale, std::abs(x));
  for (size_t k = 0; k < n; ++k) {
    std::vector<eig_detail::C> x(n);
    for (size_t i = 0; i < n; ++i) x[i] = 1 + 0.1 * static_cast<double>((i * 7 + k * 3) % 5);
    for (int pass = 0; pass < 3; ++pass) {
      eig_detail::solve_shifted(a, w[k], x, scale * 1e-16);
      double norm = 0;
      for (const auto& value : x) norm += std::norm(value);
      for (auto& value : x) value /= std::sqrt(norm);
    }
    for (size_t i = 0; i < n; ++i) v[i * n + k] = x[i];
  }
}

}  // namespace anymps
