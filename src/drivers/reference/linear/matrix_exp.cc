// SPDX-License-Identifier: Apache-2.0
// The exponential of matrices by its series, of a matrix so small that few terms count, squared as
// often as it was halved.
#include "drivers/reference/linear/factorize.h"
#include "drivers/reference/linear/matrices.h"

namespace anymps {

namespace {

template <typename A>
MatrixOf<A> exponential(MatrixOf<A> x) {
  const int halvings = halve_below(x, 0.25);
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
  for_each_matrix(x, y, [&]<typename A>(int64_t n) {
    MatrixOf<A> a = x.read<A>(n);
    if (a.finite())
      a = exponential(std::move(a));
    else
      a.fill(A(kNoResult));
    y.write(n, a);
  });
}

}  // namespace anymps
