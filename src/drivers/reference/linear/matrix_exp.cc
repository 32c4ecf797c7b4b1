// SPDX-License-Identifier: Apache-2.0
// The exponential of matrices by its series, of a matrix so small that few terms count, squared as
// often as it was halved.
#include "drivers/reference/linear/factorize.h"
#include "drivers/reference/linear/matrices.h"

namespace anymps {

namespace {

template <typename A>
MatrixOf<A> exponential(MatrixOf<A> x) {
  double norm = 0;
  for (int64_t j = 0; j < x.columns; ++j) {
    double sum = 0;
    for (int64_t i = 0; i < x.rows; ++i) sum += std::abs(x.at(i, j));
    norm = std::max(norm, sum);
  }
  int halvings = 0;
  while (std::ldexp(norm, -halvings) > 0.25) ++halvings;
  for (A& value : x.data) value *= std::ldexp(1.0, -halvings);
  MatrixOf<A> y = MatrixOf<A>::identity(x.rows);
  for (int k = 18; k > 0; --k) {  // 0.25^19 / 19! is far below what a double holds
    y = product(x, y);
    for (A& value : y.data) value /= k;
    for (int64_t i = 0; i < y.rows; ++i) y.at(i, i) += 1;
  }
  for (int k = 0; k < halvings; ++k) y = product(y, y);
  return y;
}

}  // namespace

REFERENCE(matrix_exp) {
  const Matrices x(args.in[0], 2), y(args.out[0], 2);
  with_matrix_type(x.dtype(), [&]<typename A>() {
    for (int64_t n = 0; n < y.count(); ++n) {
      MatrixOf<A> a = x.read<A>(n);
      if (a.finite())
        a = exponential(std::move(a));
      else
        a.fill(A(kNoResult));
      y.write(n, a);
    }
  });
}

}  // namespace anymps
