// SPDX-License-Identifier: Apache-2.0
// Triangular, symmetric and Hermitian matrices on the CPU.
#include "drivers/cpu/cpu_kernel.h"
#include "drivers/cpu/linear/lapack.h"
#include "drivers/cpu/linear/matrix_batch.h"

namespace anymps::cpu {

namespace {

// y @ a = b is a^T @ y^T = b^T.
CPU_KERNEL(triangular_solve, "lapack") {
  return make_matrix_kernel(
      request, batch_of(request.out(), 2), {2, 2}, {2, 0},
      []<typename A>(const MatrixItem<A>& item) {
        auto &a = item.read(0, item.a), &b = item.read(1, item.b);
        const bool unit = item.attrs.b("unit_diagonal"), left = item.attrs.b("left"),
                   upper = item.attrs.b("upper"), transpose = item.attrs.b("transpose") == left;
        int zero = 0;
        for (int64_t i = a.rows; i-- > 0 && !unit;)
          if (a.at(i, i) == A(0)) zero = static_cast<int>(i + 1);
        item.report(1, zero, "is singular");
        if (!left) b = b.transposed();
        const int n = item.extent(a.rows), columns = item.extent(b.columns);
        int info = 0;
        if (zero != 0) {  // LAPACK refuses; what a division by 0 gives is asked for
          for (int64_t c = 0; c < b.columns; ++c)
            for (int64_t step = 0; step < n; ++step) {
              const bool down = upper == transpose;
              const int64_t i = down ? step : n - 1 - step;
              for (int64_t k = down ? 0 : i + 1; k < (down ? i : n); ++k)
                b.at(i, c) -= (transpose ? a.at(k, i) : a.at(i, k)) * b.at(k, c);
              b.at(i, c) /= a.at(i, i);
            }
        } else if (n > 0 && columns > 0) {
          Lapack<A>::trtrs(upper ? "U" : "L", transpose ? "T" : "N", unit ? "U" : "N", &n, &columns,
                           a.data.data(), &n, b.data.data(), &n, &info);
        }
        item.write(0, left ? b : b.transposed());
      });
}

CPU_KERNEL(cholesky, "lapack") {
  return make_matrix_kernel(request, batch_of(request.in(0), 2), {2}, {2, 0},
                            []<typename A>(const MatrixItem<A>& item) {
                              auto& a = item.read(0, item.a);
                              const bool upper = item.attrs.b("upper");
                              const int n = item.extent(a.rows);
                              int info = 0;
                              if (n > 0)
                                Lapack<A>::potrf(upper ? "U" : "L", &n, a.data.data(), &n, &info);
                              item.report(1, info, "is not positive definite");
                              if (info != 0) a.fill(A(kNoResult));
                              a.keep_triangle(upper);
                              item.write(0, a);
                            });
}

CPU_KERNEL(cholesky_solve, "lapack") {
  return make_matrix_kernel(request, batch_of(request.out(), 2), {2, 2}, {2},
                            []<typename A>(const MatrixItem<A>& item) {
                              auto &b = item.read(0, item.b), &a = item.read(1, item.a);
                              const int n = item.extent(a.rows), columns = item.extent(b.columns);
                              int info = 0;
                              if (n > 0 && columns > 0)
                                Lapack<A>::potrs(item.attrs.b("upper") ? "U" : "L", &n, &columns,
                                                 a.data.data(), &n, b.data.data(), &n, &info);
                              item.write(0, b);
                            });
}

CPU_KERNEL(cholesky_inverse, "lapack") {
  return make_matrix_kernel(request, batch_of(request.in(0), 2), {2}, {2},
                            []<typename A>(const MatrixItem<A>& item) {
                              auto &a = item.read(0, item.a), &b = item.b;
                              const int n = item.extent(a.rows);
                              int info = 0;
                              b.resize(n, n);
                              for (int64_t i = 0; i < n; ++i) b.at(i, i) = 1;
                              if (n > 0)
                                Lapack<A>::potrs(item.attrs.b("upper") ? "U" : "L", &n, &n,
                                                 a.data.data(), &n, b.data.data(), &n, &info);
                              item.write(0, b);
                            });
}

CPU_KERNEL(ldl_factor, "lapack") {
  return make_matrix_kernel(
      request, batch_of(request.in(0), 2), {2}, {2, 1, 0},
      []<typename A>(const MatrixItem<A>& item) {
        auto& a = item.read(0, item.a);
        const int n = item.extent(a.rows);
        const auto factor = item.attrs.b("hermitian") ? Lapack<A>::hetrf : Lapack<A>::sytrf;
        std::vector<int> pivots(n);
        int info = 0;
        a.keep_triangle(false);
        if (n > 0)
          with_workspace<A>([&](A* work, int* size) {
            factor("L", &n, a.data.data(), &n, pivots.data(), work, size, &info);
          });
        item.report(2, info, "is singular");
        item.write(0, a);
        item.write_ints(1, pivots.data());
      });
}

// What LAPACK reads without a check: the blocks, and the rows they are exchanged with.
void check_ldl_pivots(const std::vector<int>& pivots, int n) {
  for (size_t k = 0; k < pivots.size(); ++k) {
    const bool block = pivots[k] < 0;
    require(!block || k + 1 < pivots.size(), "[ldl_solve] the pivots end within a block of 2 rows");
    if (block) ++k;
    const int pivot = block ? -std::min(pivots[k], -1) : pivots[k];
    require(pivot >= 1 && pivot <= n && (!block || pivots[k] < 0),
            "[ldl_solve] pivot {} is not in [1, {}]", pivots[k], n);
  }
}

CPU_KERNEL(ldl_solve, "lapack") {
  return make_matrix_kernel(request, batch_of(request.out(), 2), {2, 1, 2}, {2},
                            []<typename A>(const MatrixItem<A>& item) {
                              auto &a = item.read(0, item.a), &b = item.read(2, item.b);
                              const int n = item.extent(a.rows), columns = item.extent(b.columns);
                              const std::vector<int> pivots = item.ints(1);
                              check_ldl_pivots(pivots, n);
                              const bool hermitian = item.attrs.b("hermitian");
                              const auto solve = hermitian ? Lapack<A>::hetrs : Lapack<A>::sytrs;
                              for (int64_t i = 0; i < n && hermitian; ++i)
                                a.at(i, i) = std::real(a.at(i, i));
                              int info = 0;
                              if (n > 0 && columns > 0)
                                solve("L", &n, &columns, a.data.data(), &n, pivots.data(),
                                      b.data.data(), &n, &info);
                              item.write(0, b);
                            });
}

}  // namespace

}  // namespace anymps::cpu
