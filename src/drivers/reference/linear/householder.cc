// SPDX-License-Identifier: Apache-2.0
// Householder's reflections in LAPACK's packed form, and least squares by singular values.
#include "drivers/reference/linear/factorize.h"
#include "drivers/reference/linear/matrices.h"

namespace anymps {

namespace {

template <typename A>
Reflections<A> read_reflections(const Matrices& a, const Matrices& tau, int64_t n) {
  return {a.read<A>(n), tau.read<A>(n).data};
}

}  // namespace

REFERENCE(geqrf) {
  const Matrices x(args.in[0], 2), a(args.out[0], 2);
  for_each_matrix(x, a, [&]<typename A>(int64_t n) {
    const Reflections<A> r = reflect(x.read<A>(n));
    a.write(n, r.packed);
    if (args.out.size() < 2) return;
    MatrixOf<A> tau(1, std::ssize(r.tau));
    tau.data = r.tau;
    Matrices(args.out[1], 1).write(n, tau);
  });
}

REFERENCE(householder_product) {
  const Matrices a(args.in[0], 2), tau(args.in[1], 1), y(args.out[0], 2);
  for_each_matrix(a, y, [&]<typename A>(int64_t n) {
    MatrixOf<A> q = MatrixOf<A>::identity(y.rows()).cut(y.rows(), y.columns());
    apply_reflections(read_reflections<A>(a, tau, n), q, false);
    y.write(n, q);
  });
}

// c @ q is (q^H @ c^H)^H.
REFERENCE(ormqr) {
  const Matrices a(args.in[0], 2), tau(args.in[1], 1), c(args.in[2], 2), y(args.out[0], 2);
  const bool left = args.attrs.b("left"), adjoint = args.attrs.b("transpose") == left;
  for_each_matrix(a, y, [&]<typename A>(int64_t n) {
    MatrixOf<A> m = left ? c.read<A>(n) : c.read<A>(n).adjoint();
    apply_reflections(read_reflections<A>(a, tau, n), m, adjoint);
    y.write(n, left ? m : m.adjoint());
  });
}

// The pseudoinverse: v @ diag(1 / s) @ u^H without the singular values that count as 0.
REFERENCE(lstsq) {
  const Matrices y(args.out[0], 2), a_in(args.in[0], 2, y), b_in(args.in[1], 2, y);
  const bool full_rank = args.attrs.s("driver") == "gels";
  double rcond = args.attrs.f("rcond");
  if (rcond < 0)
    rcond =
        real_precision(a_in.dtype()) * static_cast<double>(std::max(a_in.rows(), a_in.columns()));
  for_each_matrix(a_in, y, [&]<typename A>(int64_t n) {
    const MatrixOf<A> a = a_in.read<A>(n), b = b_in.read<A>(n);
    require(a.finite(), "[lstsq] a matrix has elements that are not finite");
    const SvdFactors<A> f = singular_values(a, false);
    int64_t rank = 0;
    MatrixOf<A> inner = product(f.u.adjoint(), b);
    for (int64_t k = 0; k < inner.rows; ++k) {
      const double s = f.s.at(0, k);
      const bool counts = full_rank ? s > 0 : s > rcond * f.s.at(0, 0);
      require(counts || !full_rank, "[lstsq] a matrix has not full rank");
      rank += counts;
      for (int64_t j = 0; j < inner.columns; ++j)
        inner.at(k, j) = counts ? inner.at(k, j) / s : A(0);
    }
    const MatrixOf<A> x = product(f.vh.adjoint(), inner), ax = product(a, x);
    y.write(n, x);
    Matrix residuals(1, b.columns);
    for (int64_t i = 0; i < b.rows; ++i)
      for (int64_t j = 0; j < b.columns; ++j)
        residuals.at(0, j) += std::norm(ax.at(i, j) - b.at(i, j));
    if (args.out.size() > 1 && args.out[1].shape().back() > 0)
      Matrices(args.out[1], 1).write(n, residuals);
    if (args.out.size() > 2) Matrices(args.out[2], 0).write_ints(n, {rank});
    if (args.out.size() > 3 && args.out[3].shape().back() > 0)
      Matrices(args.out[3], 1).write(n, f.s);
  });
}

}  // namespace anymps
