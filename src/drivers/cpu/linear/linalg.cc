// SPDX-License-Identifier: Apache-2.0
// Singular values and eigenvalues on the CPU. Signs and orders are made those of
// semantics/factors.h, unless the node asks for LAPACK's own.
#include "drivers/cpu/cpu_kernel.h"
#include "drivers/cpu/linear/lapack.h"
#include "drivers/cpu/linear/matrix_batch.h"

namespace anymps::cpu {

namespace {

using Real = ColumnMatrix<double>;
using C = std::complex<double>;

constexpr const char* kFailed = "has elements that are not finite, or the iteration fails";
constexpr const char* kNotFinite = "has elements that are not finite";

// What LAPACK says, or 1 for a matrix that it is not given.
template <typename A>
int report_iteration(const MatrixItem<A>& item, size_t output, bool finite, int info) {
  if (!finite) info = 1;
  item.report(output, info, finite ? kFailed : kNotFinite);
  return info;
}

int gesdd(const char* job, int m, int n, ColumnMatrix<double>& a, Real& s, double* u, double* vh,
          int ldvh) {
  std::vector<int> ints(8 * std::min(m, n));
  int info = 0;
  with_workspace<double>([&](double* work, int* size) {
    dgesdd_(job, &m, &n, a.data.data(), &m, s.data.data(), u, &m, vh, &ldvh, work, size,
            ints.data(), &info);
  });
  return info;
}
int gesdd(const char* job, int m, int n, ColumnMatrix<C>& a, Real& s, C* u, C* vh, int ldvh) {
  const size_t least = std::min(m, n), most = std::max(m, n);
  std::vector<int> ints(8 * least);
  std::vector<double> reals(least * std::max(5 * least + 7, 2 * most + 2 * least + 1));
  int info = 0;
  with_workspace<C>([&](C* work, int* size) {
    zgesdd_(job, &m, &n, a.data.data(), &m, s.data.data(), u, &m, vh, &ldvh, work, size,
            reals.data(), ints.data(), &info);
  });
  return info;
}

CPU_KERNEL(svd, "lapack") {
  return make_matrix_kernel(
      request, batch_of(request.in(0), 2), {2}, {2, 1, 2, 0},
      []<typename A>(const MatrixItem<A>& item) {
        auto& a = item.read(0, item.a);
        const bool full = item.attrs.b("full_matrices"), finite = a.finite();
        const int m = item.extent(a.rows), n = item.extent(a.columns), k = std::min(m, n);
        const int left = full ? m : k, right = full ? n : k;
        ColumnMatrix<A> u(m, left), vh(right, n);
        Real s(1, k);
        int info = 0;
        if (k == 0) {
          for (int64_t i = 0; i < left; ++i) u.at(i, i) = 1;
          for (int64_t i = 0; i < right; ++i) vh.at(i, i) = 1;
        } else if (finite) {
          info = gesdd(full ? "A" : "S", m, n, a, s, u.data.data(), vh.data.data(), right);
        }
        if (report_iteration(item, 3, finite, info) != 0) {
          u.fill(A(kNoResult));
          s.fill(kNoResult);
          vh.fill(A(kNoResult));
        } else if (item.attrs.b("unique")) {
          sign_columns(u, &vh);
        }
        item.write(0, u);
        item.write(1, s);
        item.write(2, vh);
      });
}

CPU_KERNEL(svd_values, "lapack") {
  return make_matrix_kernel(
      request, batch_of(request.in(0), 2), {2}, {1, 0}, []<typename A>(const MatrixItem<A>& item) {
        auto& a = item.read(0, item.a);
        const bool finite = a.finite();
        const int m = item.extent(a.rows), n = item.extent(a.columns), k = std::min(m, n);
        Real s(1, k);
        A none = 0;
        int info = 0;
        if (k > 0 && finite) info = gesdd("N", m, n, a, s, &none, &none, 1);
        if (report_iteration(item, 1, finite, info) != 0) s.fill(kNoResult);
        item.write(0, s);
      });
}

int heevd(const char* job, const char* half, int n, ColumnMatrix<double>& a, Real& w) {
  int info = 0, ask = -1, ints = 0;
  double doubles = 0;
  dsyevd_(job, half, &n, a.data.data(), &n, w.data.data(), &doubles, &ask, &ints, &ask, &info);
  int size = std::max(1, static_cast<int>(doubles));
  ints = std::max(1, ints);
  std::vector<double> work(size);
  std::vector<int> iwork(ints);
  dsyevd_(job, half, &n, a.data.data(), &n, w.data.data(), work.data(), &size, iwork.data(), &ints,
          &info);
  return info;
}
int heevd(const char* job, const char* half, int n, ColumnMatrix<C>& a, Real& w) {
  int info = 0, ask = -1, ints = 0;
  C numbers = 0;
  double doubles = 0;
  zheevd_(job, half, &n, a.data.data(), &n, w.data.data(), &numbers, &ask, &doubles, &ask, &ints,
          &ask, &info);
  int size = std::max(1, static_cast<int>(numbers.real())),
      reals = std::max(1, static_cast<int>(doubles));
  ints = std::max(1, ints);
  std::vector<C> work(size);
  std::vector<double> rwork(reals);
  std::vector<int> iwork(ints);
  zheevd_(job, half, &n, a.data.data(), &n, w.data.data(), work.data(), &size, rwork.data(), &reals,
          iwork.data(), &ints, &info);
  return info;
}

CPU_KERNEL(eigh, "lapack") {
  return make_matrix_kernel(request, batch_of(request.in(0), 2), {2}, {1, 2, 0},
                            []<typename A>(const MatrixItem<A>& item) {
                              auto& a = item.read(0, item.a);
                              const bool upper = item.attrs.b("upper");
                              const int n = item.extent(a.rows);
                              a.keep_triangle(upper);  // the other half may hold anything
                              const bool finite = a.finite();
                              Real w(1, n);
                              int info = 0;
                              if (n > 0 && finite)
                                info = heevd(item.wants(1) ? "V" : "N", upper ? "U" : "L", n, a, w);
                              if (report_iteration(item, 2, finite, info) != 0) {
                                w.fill(kNoResult);
                                a.fill(A(kNoResult));
                              } else if (item.wants(1) && item.attrs.b("unique")) {
                                sign_columns(a);
                              }
                              item.write(0, w);
                              item.write(1, a);
                            });
}

// v is empty where only the values are asked for.
int geev(int n, ColumnMatrix<double>& a, ComplexVector& w, ComplexVector& v) {
  const int one = 1;
  const size_t size = n;
  std::vector<double> real(size), imaginary(size), right(v.size());
  double none = 0;
  int info = 0;
  with_workspace<double>([&](double* work, int* count) {
    dgeev_("N", v.empty() ? "N" : "V", &n, a.data.data(), &n, real.data(), imaginary.data(), &none,
           &one, v.empty() ? &none : right.data(), &n, work, count, &info);
  });
  for (size_t k = 0; k < size; ++k) {
    w[k] = {real[k], imaginary[k]};
    for (size_t i = 0; i < size && !v.empty(); ++i) {
      if (imaginary[k] == 0) {
        v[i * size + k] = right[k * size + i];
      } else if (imaginary[k] > 0) {  // a pair: this column and the next are its parts
        v[i * size + k] = {right[k * size + i], right[(k + 1) * size + i]};
        v[i * size + k + 1] = std::conj(v[i * size + k]);
      }
    }
  }
  return info;
}
int geev(int n, ColumnMatrix<C>& a, ComplexVector& w, ComplexVector& v) {
  const int one = 1;
  const size_t size = n;
  std::vector<double> reals(2 * size);
  ComplexVector right(v.size());
  C none = 0;
  int info = 0;
  with_workspace<C>([&](C* work, int* count) {
    zgeev_("N", v.empty() ? "N" : "V", &n, a.data.data(), &n, w.data(), &none, &one,
           v.empty() ? &none : right.data(), &n, work, count, reals.data(), &info);
  });
  for (size_t k = 0; k < size && !v.empty(); ++k)
    for (size_t i = 0; i < size; ++i) v[i * size + k] = right[k * size + i];
  return info;
}

CPU_KERNEL(eig, "lapack") {
  return make_matrix_kernel(request, batch_of(request.in(0), 2), {2}, {1, 2, 0},
                            []<typename A>(const MatrixItem<A>& item) {
                              auto& a = item.read(0, item.a);
                              const bool finite = a.finite();
                              const int n = item.extent(a.rows);
                              ComplexMatrix values(1, n), vectors(item.wants(1) ? n : 0, n);
                              int info = 0;
                              if (n > 0 && finite) info = geev(n, a, values.data, vectors.data);
                              if (report_iteration(item, 2, finite, info) != 0) {
                                values.fill(kNoResult);
                                vectors.fill(kNoResult);
                              } else if (item.attrs.b("unique")) {
                                order_eig(values.data, vectors.data);
                              }
                              item.write(0, values);
                              item.write(1, vectors);
                            });
}

}  // namespace

}  // namespace anymps::cpu
