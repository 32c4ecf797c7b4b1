// SPDX-License-Identifier: Apache-2.0
// The gradient of eigenvalues and eigenvectors. The decomposition is made again in double: the op's
// results are complex numbers of single precision.
#include "drivers/reference/linear/linalg_eig.h"
#include "drivers/reference/linear/matrices.h"

namespace anymps {

namespace {

using C = std::complex<double>;

// Solves a^H y = b for square matrices of n rows, by elimination with pivoting.
ComplexVector solve_adjoint(const ComplexVector& a, ComplexVector b, size_t n) {
  ComplexVector m(n * n);
  for (size_t i = 0; i < n; ++i)
    for (size_t j = 0; j < n; ++j) m[i * n + j] = std::conj(a[j * n + i]);
  for (size_t k = 0; k < n; ++k) {
    size_t pivot = k;
    for (size_t i = k + 1; i < n; ++i)
      if (std::abs(m[i * n + k]) > std::abs(m[pivot * n + k])) pivot = i;
    require(std::abs(m[pivot * n + k]) > 1e-12,
            "[eig_gradient] the eigenvectors of a matrix do not span the space");
    for (size_t j = 0; j < n && pivot != k; ++j) {
      std::swap(m[k * n + j], m[pivot * n + j]);
      std::swap(b[k * n + j], b[pivot * n + j]);
    }
    for (size_t i = 0; i < n; ++i) {
      if (i == k) continue;
      const C factor = m[i * n + k] / m[k * n + k];
      for (size_t j = 0; j < n; ++j) {
        m[i * n + j] -= factor * m[k * n + j];
        b[i * n + j] -= factor * b[k * n + j];
      }
    }
  }
  for (size_t i = 0; i < n; ++i)
    for (size_t j = 0; j < n; ++j) b[i * n + j] /= m[i * n + i];
  return b;
}

// What dv says of vectors that may change in any direction: a vector keeps its norm, and its
// leading element stays real.
ComplexVector free_gradient(const ComplexVector& v, const ComplexVector& dv, size_t n) {
  ComplexVector h = dv;
  for (size_t k = 0; k < n; ++k) {
    C along = 0;  // dv^H v
    double largest = 0;
    for (size_t i = 0; i < n; ++i) {
      along += std::conj(dv[i * n + k]) * v[i * n + k];
      largest = std::max(largest, std::abs(v[i * n + k]));
    }
    size_t lead = 0;
    while (std::abs(v[lead * n + k]) < largest * (1 - 1e-6)) ++lead;
    for (size_t i = 0; i < n; ++i) h[i * n + k] -= along.real() * v[i * n + k];
    h[lead * n + k] += C(0, along.imag() / v[lead * n + k].real());
  }
  return h;
}

}  // namespace

REFERENCE(eig_gradient) {
  const Matrices x(args.in[0], 2), dx(args.out[0], 2);
  const size_t n = x.columns();
  const ComplexVector all_dw = args.has(1) ? read_dense<C>(args.in[1]) : ComplexVector(),
                      all_dv = args.has(2) ? read_dense<C>(args.in[2]) : ComplexVector();
  const auto part = [](const ComplexVector& all, size_t count, int64_t at) {
    const auto first = all.begin() + at * static_cast<int64_t>(count);
    return ComplexVector(first, first + static_cast<int64_t>(count));
  };
  for (int64_t at = 0; at < x.count(); ++at) {
    const Matrix given = x.read(at);
    ComplexMatrix a(given.rows, given.columns);
    a.data.assign(given.data.begin(), given.data.end());
    require(a.finite(), "[eig_gradient] a matrix has elements that are not finite");
    ComplexVector w, v, inner(n * n);
    eigen_decompose(a, w, v);
    order_eig(w, v);
    double scale = 1e-300;
    for (const C& value : w) scale = std::max(scale, std::abs(value));
    if (args.has(2)) {
      const ComplexVector h = free_gradient(v, part(all_dv, n * n, at), n);
      for (size_t i = 0; i < n; ++i)
        for (size_t j = 0; j < n; ++j) {
          if (i == j) continue;
          require(std::abs(w[j] - w[i]) > scale * 1e-12,
                  "[eig_gradient] a matrix has equal eigenvalues");
          C sum = 0;
          for (size_t k = 0; k < n; ++k) sum += std::conj(v[k * n + i]) * h[k * n + j];
          inner[i * n + j] = sum / std::conj(w[j] - w[i]);
        }
    }
    if (args.has(1)) {
      const ComplexVector dw = part(all_dw, n, at);
      for (size_t i = 0; i < n; ++i) inner[i * n + i] = dw[i];
    }
    ComplexVector right(n * n);  // inner @ v^H
    for (size_t i = 0; i < n; ++i)
      for (size_t j = 0; j < n; ++j)
        for (size_t k = 0; k < n; ++k)
          right[i * n + j] += inner[i * n + k] * std::conj(v[j * n + k]);
    const ComplexVector result = solve_adjoint(v, right, n);
    Matrix real(x.rows(), x.columns());
    for (size_t i = 0; i < result.size(); ++i) real.data[i] = result[i].real();
    dx.write(at, real);
  }
}

}  // namespace anymps
