// SPDX-License-Identifier: Apache-2.0
// The exponential of matrices on the CPU: Higham's scaling and squaring (The Scaling and Squaring
// Method for the Matrix Exponential Revisited, 2005) with the Padé approximant of degree 13.
#include "drivers/cpu/linear/lu.h"

namespace anymps::cpu {

namespace {

template <typename A>
ColumnMatrix<A> multiplied(const ColumnMatrix<A>& a, const ColumnMatrix<A>& b) {
  ColumnMatrix<A> c(a.rows, b.columns);
  for (int64_t j = 0; j < b.columns; ++j) {
    A* to = c.data.data() + j * c.rows;
    for (int64_t k = 0; k < a.columns; ++k) {
      const A* from = a.data.data() + k * a.rows;
      const A factor = b.at(k, j);
      for (int64_t i = 0; i < a.rows; ++i) to[i] += from[i] * factor;
    }
  }
  return c;
}

// b[0] * 1 + b[2] * x2 + b[4] * x4 + b[6] * x6, every second coefficient from `first` on.
template <typename A>
ColumnMatrix<A> even_sum(const double* b, bool one, const ColumnMatrix<A>& x2,
                         const ColumnMatrix<A>& x4, const ColumnMatrix<A>& x6) {
  ColumnMatrix<A> sum(x2.rows, x2.columns);
  for (size_t i = 0; i < sum.data.size(); ++i)
    sum.data[i] = b[2] * x2.data[i] + b[4] * x4.data[i] + b[6] * x6.data[i];
  for (int64_t i = 0; i < sum.rows && one; ++i) sum.at(i, i) += b[0];
  return sum;
}

template <typename A>
void add(ColumnMatrix<A>& to, const ColumnMatrix<A>& from) {
  for (size_t i = 0; i < to.data.size(); ++i) to.data[i] += from.data[i];
}

template <typename A>
ColumnMatrix<A> exponential(ColumnMatrix<A> x) {
  // The coefficients, and the norm up to which the approximant is exact in double.
  constexpr double kPade[] = {64764752532480000,
                              32382376266240000,
                              7771770303897600,
                              1187353796428800,
                              129060195264000,
                              10559470521600,
                              670442572800,
                              33522128640,
                              1323241920,
                              40840800,
                              960960,
                              16380,
                              182,
                              1};
  constexpr double kTheta = 5.371920351148152;
  const int halvings = halve_below(x, kTheta);
  const ColumnMatrix<A> x2 = multiplied(x, x), x4 = multiplied(x2, x2), x6 = multiplied(x4, x2);
  const auto half = [&](const double* b) {  // of every second power from b[0] on
    ColumnMatrix<A> sum = multiplied(x6, even_sum(b + 6, false, x2, x4, x6));
    add(sum, even_sum(b, true, x2, x4, x6));
    return sum;
  };
  const ColumnMatrix<A> odd = multiplied(x, half(kPade + 1)), even = half(kPade);
  ColumnMatrix<A> above = even, below = even;
  for (size_t i = 0; i < odd.data.size(); ++i) {
    above.data[i] += odd.data[i];
    below.data[i] -= odd.data[i];
  }
  std::vector<int> pivots;
  lu_in_place(below, pivots);
  lu_solve_in_place(below, pivots, above, 'N');
  for (int k = 0; k < halvings; ++k) above = multiplied(above, above);
  return above;
}

KernelPtr make_matrix_exp(const KernelRequest& request, std::string&) {
  return make_matrix_kernel(request, batch_of(request.in(0), 2), {2}, {2},
                            []<typename A>(const MatrixItem<A>& item) {
                              auto& a = item.read(0, item.a);
                              item.extent(a.rows);
                              if (a.finite())
                                a = exponential(std::move(a));
                              else
                                a.fill(A(kNoResult));
                              item.write(0, a);
                            });
}

const KernelRegistrar kMatrixExp("cpu", "matrix_exp", "pade", 10, make_matrix_exp);

}  // namespace

}  // namespace anymps::cpu
