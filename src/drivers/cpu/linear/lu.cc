// SPDX-License-Identifier: Apache-2.0
// LU factors on the CPU, and what is made of them: determinants, inverses, solutions.
#include "drivers/cpu/linear/lu.h"
#include "drivers/cpu/cpu_kernel.h"

namespace anymps::cpu {

namespace {

constexpr const char* kSingular = "is singular";

// Reads a square matrix and factors it; returns which pivot is 0, counted from 1, or 0.
template <typename A>
int read_factored(const MatrixItem<A>& item, std::vector<int>& pivots) {
  auto& a = item.read(0, item.a);
  item.extent(a.rows);
  return lu_in_place(a, pivots);
}

CPU_KERNEL(inverse, "lapack") {
  return make_matrix_kernel(request, batch_of(request.in(0), 2), {2}, {2, 0},
                            []<typename A>(const MatrixItem<A>& item) {
                              const auto& a = item.a;
                              std::vector<int> pivots;
                              const int info = read_factored(item, pivots);
                              item.report(1, info, kSingular);
                              item.b.resize(a.rows, a.rows);
                              for (int64_t i = 0; i < a.rows; ++i) item.b.at(i, i) = 1;
                              if (info == 0)
                                lu_solve_in_place(a, pivots, item.b, 'N');
                              else
                                item.b.fill(A(kNoResult));
                              item.write(0, item.b);
                            });
}

CPU_KERNEL(solve, "lapack") {
  const bool vector = request.attrs.b("vector");
  const size_t axes = vector ? 1 : 2;
  return make_matrix_kernel(request, batch_of(request.out(), axes), {2, axes}, {axes, 0},
                            [vector]<typename A>(const MatrixItem<A>& item) {
                              auto &a = item.read(0, item.a), &b = item.read(1, item.b);
                              item.extent(std::max({a.rows, b.rows, b.columns}));
                              const bool left = item.attrs.b("left");
                              std::vector<int> pivots;
                              const int info = lu_in_place(a, pivots);
                              item.report(1, info, kSingular);
                              if (info != 0) {
                                b.fill(A(kNoResult));
                                return item.write(0, b);
                              }
                              const bool turn = vector || !left;  // vectors are read as rows
                              if (turn) b = b.transposed();
                              lu_solve_in_place(a, pivots, b, left ? 'N' : 'T');
                              item.write(0, turn ? b.transposed() : b);
                            });
}

CPU_KERNEL(det, "lapack") {
  return make_matrix_kernel(request, batch_of(request.in(0), 2), {2}, {0},
                            []<typename A>(const MatrixItem<A>& item) {
                              const auto& a = item.a;
                              std::vector<int> pivots;
                              ColumnMatrix<A> det(1, 1);
                              det.data[0] = read_factored(item, pivots) == 0 ? 1 : 0;
                              for (int64_t i = 0; i < a.rows; ++i)
                                det.data[0] *= pivots[i] == i + 1 ? a.at(i, i) : -a.at(i, i);
                              item.write(0, det);
                            });
}

CPU_KERNEL(slogdet, "lapack") {
  return make_matrix_kernel(request, batch_of(request.in(0), 2), {2}, {0, 0},
                            []<typename A>(const MatrixItem<A>& item) {
                              const auto& a = item.a;
                              std::vector<int> pivots;
                              ColumnMatrix<A> sign(1, 1);
                              ColumnMatrix<double> logarithm(1, 1);
                              const int info = read_factored(item, pivots);
                              sign.data[0] = 1;
                              for (int64_t i = 0; i < a.rows; ++i) {
                                const double size = std::abs(a.at(i, i));
                                const A turn = a.at(i, i) / size;
                                sign.data[0] *= pivots[i] == i + 1 ? turn : -turn;
                                logarithm.data[0] += std::log(size);
                              }
                              if (info != 0) sign.data[0] = 0, logarithm.data[0] = -HUGE_VAL;
                              item.write(0, sign);
                              item.write(1, logarithm);
                            });
}

CPU_KERNEL(lu_factor, "lapack") {
  return make_matrix_kernel(request, batch_of(request.in(0), 2), {2}, {2, 1, 0},
                            []<typename A>(const MatrixItem<A>& item) {
                              auto& a = item.read(0, item.a);
                              item.extent(std::max(a.rows, a.columns));
                              std::vector<int> pivots;
                              const int info = lu_in_place(a, pivots, item.attrs.b("pivot"));
                              item.report(2, info, kSingular);
                              item.write(0, a);
                              item.write_ints(1, pivots.data());
                            });
}

// y @ x = b is x^T @ y^T = b^T, and y @ x^H = b is x @ y^H = b^H.
CPU_KERNEL(lu_solve, "lapack") {
  return make_matrix_kernel(
      request, batch_of(request.out(), 2), {2, 1, 2}, {2},
      []<typename A>(const MatrixItem<A>& item) {
        auto &a = item.read(0, item.a), &b = item.read(2, item.b);
        const int n = item.extent(std::max({a.rows, b.rows, b.columns}));
        const std::vector<int> pivots = item.ints(1);
        for (const int pivot : pivots)
          require(pivot >= 1 && pivot <= a.rows, "[lu_solve] pivot {} is not in [1, {}]", pivot, n);
        const bool left = item.attrs.b("left"), adjoint = item.attrs.b("adjoint");
        if (!left) b = b.adjoint();
        lu_solve_in_place(a, pivots, b, adjoint == left ? 'C' : 'N');
        item.write(0, left ? b : b.adjoint());
      });
}

}  // namespace

}  // namespace anymps::cpu
