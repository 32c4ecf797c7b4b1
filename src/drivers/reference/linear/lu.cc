// SPDX-License-Identifier: Apache-2.0
// LU factors and what is made of them, one matrix after the other.
#include "drivers/reference/linear/factorize.h"
#include "drivers/reference/linear/matrices.h"

namespace anymps {

REFERENCE(lu_factor) {
  const Matrices x(args.in[0], 2), lu(args.out[0], 2);
  const bool pivot = args.attrs.b("pivot");
  for_each_matrix(x, lu, [&]<typename A>(int64_t n) {
    const LuFactors<A> f = lu_factors(x.read<A>(n), pivot);
    report(args, 2, n, f.info, "is singular");
    lu.write(n, f.lu);
    if (args.out.size() > 1) Matrices(args.out[1], 1).write_ints(n, f.pivots);
  });
}

REFERENCE(lu_unpack) {
  const Matrices packed(args.in[0], 2), pivots(args.in[1], 1), p_out(args.out[0], 2);
  for_each_matrix(packed, packed, [&]<typename A>(int64_t n) {
    MatrixOf<A> lu = packed.read<A>(n), p = MatrixOf<A>::identity(lu.rows);
    exchange_rows(p, pivots.ints(n), true);
    p_out.write(n, p);
    const int64_t inner = std::min(lu.rows, lu.columns);
    MatrixOf<A> l = lu.cut(lu.rows, inner), u = lu.cut(inner, lu.columns);
    l.keep_triangle(false);
    u.keep_triangle(true);
    for (int64_t i = 0; i < inner; ++i) l.at(i, i) = 1;
    if (args.out.size() > 1) Matrices(args.out[1], 2).write(n, l);
    if (args.out.size() > 2) Matrices(args.out[2], 2).write(n, u);
  });
}

// y @ x = b is x^H @ y^H = b^H.
REFERENCE(lu_solve) {
  const Matrices y(args.out[0], 2), lu(args.in[0], 2, y), pivots(args.in[1], 1, y),
      b(args.in[2], 2, y);
  const bool left = args.attrs.b("left"), adjoint = args.attrs.b("adjoint") == left;
  for_each_matrix(lu, y, [&]<typename A>(int64_t n) {
    const LuFactors<A> f{lu.read<A>(n), pivots.ints(n), 0};
    MatrixOf<A> right = b.read<A>(n);
    if (!left) right = right.adjoint();
    right = adjoint ? solve_lu_adjoint(f, std::move(right)) : solve_lu(f, std::move(right));
    y.write(n, left ? right : right.adjoint());
  });
}

}  // namespace anymps
