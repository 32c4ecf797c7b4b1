// SPDX-License-Identifier: Apache-2.0
// Householder's reflections on the CPU, and least squares.
#include "drivers/cpu/cpu_kernel.h"
#include "drivers/cpu/linear/lapack.h"
#include "drivers/cpu/linear/matrix_batch.h"

namespace anymps::cpu {

namespace {

// a becomes r and the vectors of the reflections.
template <typename A>
void reflect(const MatrixItem<A>& item, ColumnMatrix<A>& a, ColumnMatrix<A>& tau) {
  const int m = item.extent(a.rows), n = item.extent(a.columns);
  tau.resize(1, std::min(m, n));
  int info = 0;
  if (tau.columns > 0)
    with_workspace<A>([&](A* work, int* size) {
      Lapack<A>::geqrf(&m, &n, a.data.data(), &m, tau.data.data(), work, size, &info);
    });
}

// The first `columns` columns of the product of the reflections.
template <typename A>
ColumnMatrix<A> multiply_out(const MatrixItem<A>& item, const ColumnMatrix<A>& a,
                             const ColumnMatrix<A>& tau, int64_t columns) {
  const int m = item.extent(a.rows), n = item.extent(columns), k = item.extent(tau.columns);
  ColumnMatrix<A> q(m, n);
  std::copy_n(a.data.begin(), a.rows * std::min(a.columns, columns), q.data.begin());
  int info = 0;
  if (m > 0 && n > 0)
    with_workspace<A>([&](A* work, int* size) {
      Lapack<A>::orgqr(&m, &n, &k, q.data.data(), &m, tau.data.data(), work, size, &info);
    });
  return q;
}

CPU_KERNEL(qr, "lapack") {
  const std::string& mode = request.attrs.s("mode");
  const bool complete = mode == "complete", only_r = mode == "r";
  return make_matrix_kernel(
      request, batch_of(request.in(0), 2), {2}, {only_r ? size_t{1} : size_t{2}, 2},
      [=]<typename A>(const MatrixItem<A>& item) {
        auto &a = item.read(0, item.a), &tau = item.b;
        reflect(item, a, tau);
        const int64_t inner = complete ? a.rows : std::min(a.rows, a.columns);
        ColumnMatrix<A> r = a.cut(inner, a.columns);
        r.keep_triangle(true);
        ColumnMatrix<A> q = only_r ? ColumnMatrix<A>(0, inner) : multiply_out(item, a, tau, inner);
        if (item.attrs.b("unique")) sign_qr(q, r);
        if (!only_r) item.write(0, q);
        item.write(1, r);
      });
}

CPU_KERNEL(geqrf, "lapack") {
  return make_matrix_kernel(request, batch_of(request.in(0), 2), {2}, {2, 1},
                            []<typename A>(const MatrixItem<A>& item) {
                              reflect(item, item.read(0, item.a), item.b);
                              item.write(0, item.a);
                              item.write(1, item.b);
                            });
}

CPU_KERNEL(householder_product, "lapack") {
  return make_matrix_kernel(request, batch_of(request.in(0), 2), {2, 1}, {2},
                            []<typename A>(const MatrixItem<A>& item) {
                              auto &a = item.read(0, item.a), &tau = item.read(1, item.b);
                              item.write(0, multiply_out(item, a, tau, a.columns));
                            });
}

CPU_KERNEL(ormqr, "lapack") {
  return make_matrix_kernel(
      request, batch_of(request.in(0), 2), {2, 1, 2}, {2},
      []<typename A>(const MatrixItem<A>& item) {
        auto &a = item.read(0, item.a), &tau = item.read(1, item.b);
        ColumnMatrix<A> c;
        item.read(2, c);
        const int lda = std::max(1, item.extent(a.rows)), m = item.extent(c.rows),
                  n = item.extent(c.columns), k = item.extent(tau.columns);
        const char* adjoint = std::is_same_v<A, double> ? "T" : "C";
        int info = 0;
        if (m > 0 && n > 0 && k > 0)
          with_workspace<A>([&](A* work, int* size) {
            Lapack<A>::ormqr(item.attrs.b("left") ? "L" : "R",
                             item.attrs.b("transpose") ? adjoint : "N", &m, &n, &k, a.data.data(),
                             &lda, tau.data.data(), c.data.data(), &m, work, size, &info);
          });
        item.write(0, c);
      });
}

// One least squares problem; b has room for the solution.
struct LeastSquares {
  int m = 0, n = 0, columns = 0, rank = 0, info = 0;
  double rcond = 0;
  ColumnMatrix<double> s;

  int rows() const { return std::max(m, n); }
  void gelsd(double* a, double* b) {
    const int ldb = rows();
    std::vector<int> ints(1);
    with_workspace<double>([&](double* work, int* size) {
      dgelsd_(&m, &n, &columns, a, &m, b, &ldb, s.data.data(), &rcond, &rank, work, size,
              ints.data(), &info);
      ints.resize(std::max(1, ints[0]));
    });
  }
  void gelsd(std::complex<double>* a, std::complex<double>* b) {
    const int ldb = rows();
    std::vector<int> ints(1);
    std::vector<double> reals(1);
    with_workspace<std::complex<double>>([&](std::complex<double>* work, int* size) {
      zgelsd_(&m, &n, &columns, a, &m, b, &ldb, s.data.data(), &rcond, &rank, work, size,
              reals.data(), ints.data(), &info);
      ints.resize(std::max(1, ints[0]));
      reals.resize(std::max(1.0, reals[0]));
    });
  }
  void gelsy(double* a, double* b) {
    const int ldb = rows();
    std::vector<int> pivots(n);
    with_workspace<double>([&](double* work, int* size) {
      dgelsy_(&m, &n, &columns, a, &m, b, &ldb, pivots.data(), &rcond, &rank, work, size, &info);
    });
  }
  void gelsy(std::complex<double>* a, std::complex<double>* b) {
    const int ldb = rows();
    std::vector<int> pivots(n);
    std::vector<double> reals(2 * n);
    with_workspace<std::complex<double>>([&](std::complex<double>* work, int* size) {
      zgelsy_(&m, &n, &columns, a, &m, b, &ldb, pivots.data(), &rcond, &rank, work, size,
              reals.data(), &info);
    });
  }
  template <typename A>
  void gels(A* a, A* b) {
    const int ldb = rows();
    rank = std::min(m, n);
    // LAPACK solves with a matrix of zeros without a look at its rank.
    const auto zero = [](const A& x) { return x == A(0); };
    require(!std::all_of(a, a + static_cast<int64_t>(m) * n, zero),
            "[lstsq] a matrix has not full rank");
    with_workspace<A>([&](A* work, int* size) {
      Lapack<A>::gels("N", &m, &n, &columns, a, &m, b, &ldb, work, size, &info);
    });
    require(info == 0, "[lstsq] a matrix has not full rank");
  }
};

CPU_KERNEL(lstsq, "lapack") {
  const TensorDesc& a = request.in(0);
  const std::string& driver = request.attrs.s("driver");
  const bool values = driver == "gelsd" || driver == "gelss", full_rank = driver == "gels";
  double rcond = request.attrs.f("rcond");
  if (rcond < 0)
    rcond = real_precision(a.dtype) *
            static_cast<double>(std::max(a.shape.back(), a.shape[a.shape.size() - 2]));
  return make_matrix_kernel(
      request, batch_of(request.out(), 2), {2, 2}, {2, 1, 0, 1},
      [=]<typename A>(const MatrixItem<A>& item) {
        auto &a = item.read(0, item.a), &b = item.read(1, item.b);
        require(a.finite(), "[lstsq] a matrix has elements that are not finite");
        LeastSquares problem{item.extent(a.rows), item.extent(a.columns), item.extent(b.columns)};
        problem.rcond = rcond;
        problem.s.resize(1, std::min(a.rows, a.columns));
        ColumnMatrix<A> x(problem.rows(), b.columns), work = a;
        for (int64_t j = 0; j < b.columns; ++j)
          for (int64_t i = 0; i < b.rows; ++i) x.at(i, j) = b.at(i, j);
        if (problem.s.columns == 0 || b.columns == 0)
          x.fill(A(0));
        else if (full_rank)
          problem.gels(work.data.data(), x.data.data());
        else if (values)
          problem.gelsd(work.data.data(), x.data.data());
        else
          problem.gelsy(work.data.data(), x.data.data());
        require(problem.info == 0, "[lstsq] the iteration does not converge");
        item.write(0, x);
        ColumnMatrix<double> residuals(1, a.rows > a.columns ? b.columns : 0);
        for (int64_t j = 0; j < residuals.columns && item.wants(1); ++j) {
          for (int64_t k = 0; k < a.columns; ++k)
            for (int64_t i = 0; i < a.rows; ++i) b.at(i, j) -= a.at(i, k) * x.at(k, j);
          for (int64_t i = 0; i < a.rows; ++i) residuals.at(0, j) += std::norm(b.at(i, j));
        }
        item.write(1, residuals);
        item.write_ints(2, &problem.rank);
        if (values) item.write(3, problem.s);
      });
}

}  // namespace

}  // namespace anymps::cpu
