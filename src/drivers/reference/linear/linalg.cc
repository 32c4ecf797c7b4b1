// SPDX-License-Identifier: Apache-2.0
// Linear algebra by textbook methods (factorize.h), one matrix after the other.
#include "drivers/reference/linear/factorize.h"
#include "drivers/reference/linear/linalg_eig.h"
#include "drivers/reference/linear/matrices.h"

namespace anymps {

namespace {

constexpr const char* kSingular = "is singular";
constexpr const char* kNotFinite = "has elements that are not finite";

// y of a @ y = b, or of y @ a = b.
template <typename A>
MatrixOf<A> solve_side(const LuFactors<A>& f, const MatrixOf<A>& b, bool left) {
  if (left) return solve_lu(f, b);
  return solve_lu_adjoint(f, b.adjoint()).adjoint();
}

template <typename A>
void no_result(MatrixOf<A>& m) {
  m.fill(A(kNoResult));
}

}  // namespace

REFERENCE(inverse) {
  const Matrices x(args.in[0], 2), y(args.out[0], 2);
  for_each_matrix(x, y, [&]<typename A>(int64_t n) {
    const LuFactors<A> f = lu_factors(x.read<A>(n));
    report(args, 1, n, f.info, kSingular);
    MatrixOf<A> result = MatrixOf<A>::identity(f.lu.rows);
    if (f.info != 0)
      no_result(result);
    else
      result = solve_lu(f, std::move(result));
    y.write(n, result);
  });
}

REFERENCE(det) {
  const Matrices x(args.in[0], 2), y(args.out[0], 0);
  for_each_matrix(x, y, [&]<typename A>(int64_t n) {
    const LuFactors<A> f = lu_factors(x.read<A>(n));
    MatrixOf<A> result(1, 1);
    result.at(0, 0) = f.info == 0 ? 1 : 0;
    for (int64_t i = 0; i < f.lu.rows; ++i)
      result.at(0, 0) *= f.pivots[i] == i + 1 ? f.lu.at(i, i) : -f.lu.at(i, i);
    y.write(n, result);
  });
}

REFERENCE(slogdet) {
  const Matrices x(args.in[0], 2), sign(args.out[0], 0);
  for_each_matrix(x, sign, [&]<typename A>(int64_t n) {
    const LuFactors<A> f = lu_factors(x.read<A>(n));
    MatrixOf<A> turn(1, 1);
    Matrix logarithm(1, 1);
    turn.at(0, 0) = f.info == 0 ? 1 : 0;
    for (int64_t i = 0; i < f.lu.rows; ++i) {
      const A d = f.lu.at(i, i);
      turn.at(0, 0) *= f.pivots[i] == i + 1 ? d / std::abs(d) : -d / std::abs(d);
      logarithm.at(0, 0) += std::log(std::abs(d));
    }
    if (f.info != 0) turn.at(0, 0) = 0, logarithm.at(0, 0) = -HUGE_VAL;
    sign.write(n, turn);
    if (args.out.size() > 1) Matrices(args.out[1], 0).write(n, logarithm);
  });
}

REFERENCE(solve) {
  const bool left = args.attrs.b("left"), vector = args.attrs.b("vector");
  const size_t axes = vector ? 1 : 2;
  const Matrices y(args.out[0], axes), a(args.in[0], 2, y), b(args.in[1], axes, y);
  for_each_matrix(a, y, [&]<typename A>(int64_t n) {
    const LuFactors<A> f = lu_factors(a.read<A>(n));
    report(args, 1, n, f.info, kSingular);
    MatrixOf<A> right = b.read<A>(n);
    const bool column = vector && left;
    if (column) right = right.transposed();
    if (f.info != 0)
      no_result(right);
    else
      right = solve_side(f, right, left);
    y.write(n, column ? right.transposed() : right);
  });
}

REFERENCE(triangular_solve) {
  const Matrices y(args.out[0], 2), a(args.in[0], 2, y), b(args.in[1], 2, y);
  const bool unit = args.attrs.b("unit_diagonal"), left = args.attrs.b("left");
  const bool turned = args.attrs.b("transpose") == left;  // y @ a = b is a^T @ y^T = b^T
  const bool upper = args.attrs.b("upper") != turned;
  for_each_matrix(a, y, [&]<typename A>(int64_t n) {
    MatrixOf<A> m = a.read<A>(n);
    int64_t info = 0;
    for (int64_t i = m.rows; i-- > 0 && !unit;)
      if (m.at(i, i) == A(0)) info = i + 1;
    report(args, 1, n, info, kSingular);
    if (turned) m = m.transposed();
    MatrixOf<A> right = b.read<A>(n);
    right = solve_triangle(m, left ? right : right.transposed(), upper, unit);
    y.write(n, left ? right : right.transposed());
  });
}

REFERENCE(cholesky) {
  const Matrices x(args.in[0], 2), y(args.out[0], 2);
  const bool upper = args.attrs.b("upper");
  for_each_matrix(x, y, [&]<typename A>(int64_t n) {
    const MatrixOf<A> a = upper ? x.read<A>(n).adjoint() : x.read<A>(n);
    MatrixOf<A> l(a.rows, a.rows);
    int64_t info = 0;
    for (int64_t i = 0; i < a.rows && info == 0; ++i)
      for (int64_t j = 0; j <= i; ++j) {
        A sum = a.at(i, j);
        for (int64_t k = 0; k < j; ++k) sum -= l.at(i, k) * conjugate(l.at(j, k));
        if (i == j && !(std::real(sum) > 0)) info = i + 1;
        l.at(i, j) = i == j ? A(std::sqrt(std::real(sum))) : sum / l.at(j, j);
      }
    report(args, 1, n, info, "is not positive definite");
    if (info != 0) {
      no_result(l);
      l.keep_triangle(false);
    }
    y.write(n, upper ? l.adjoint() : l);
  });
}

REFERENCE(qr) {
  const Matrices x(args.in[0], 2);
  const std::string& mode = args.attrs.s("mode");
  for_each_matrix(x, x, [&]<typename A>(int64_t n) {
    auto [q, r] = householder(x.read<A>(n));
    if (args.attrs.b("unique")) sign_qr(q, r);
    const int64_t inner = mode == "complete" ? q.rows : std::min(r.rows, r.columns);
    if (mode != "r") Matrices(args.out[0], 2).write(n, q.cut(q.rows, inner));
    if (args.out.size() > 1) Matrices(args.out[1], 2).write(n, r.cut(inner, r.columns));
  });
}

REFERENCE(svd) {
  const Matrices x(args.in[0], 2);
  for_each_matrix(x, x, [&]<typename A>(int64_t n) {
    const MatrixOf<A> a = x.read<A>(n);
    const bool finite = a.finite();
    report(args, 3, n, finite ? 0 : 1, kNotFinite);
    SvdFactors<A> f =
        singular_values(finite ? a : MatrixOf<A>(a.rows, a.columns), args.attrs.b("full_matrices"));
    if (!finite) no_result(f.u), no_result(f.vh), no_result(f.s);
    sign_columns(f.u, &f.vh);
    Matrices(args.out[0], 2).write(n, f.u);
    if (args.out.size() > 1) Matrices(args.out[1], 1).write(n, f.s);
    if (args.out.size() > 2) Matrices(args.out[2], 2).write(n, f.vh);
  });
}

REFERENCE(svd_values) {
  const Matrices x(args.in[0], 2);
  for_each_matrix(x, x, [&]<typename A>(int64_t n) {
    const MatrixOf<A> a = x.read<A>(n);
    const bool finite = a.finite();
    report(args, 1, n, finite ? 0 : 1, kNotFinite);
    Matrix s(1, std::min(a.rows, a.columns));
    if (finite)
      s = singular_values(a, false).s;
    else
      no_result(s);
    Matrices(args.out[0], 1).write(n, s);
  });
}

REFERENCE(eigh) {
  const Matrices x(args.in[0], 2), w(args.out[0], 1);
  const bool upper = args.attrs.b("upper");
  for_each_matrix(x, w, [&]<typename A>(int64_t n) {
    MatrixOf<A> a = x.read<A>(n), v = MatrixOf<A>::identity(a.rows), vectors(a.rows, a.rows);
    Matrix sorted(1, a.rows);
    for (int64_t i = 0; i < a.rows; ++i) {
      a.at(i, i) = std::real(a.at(i, i));
      for (int64_t j = 0; j < i; ++j)
        (upper ? a.at(i, j) : a.at(j, i)) = conjugate(upper ? a.at(j, i) : a.at(i, j));
    }
    const bool finite = a.finite();
    report(args, 2, n, finite ? 0 : 1, kNotFinite);
    if (finite) {
      jacobi(a, v);
      std::vector<std::pair<double, int64_t>> values;
      for (int64_t i = 0; i < a.rows; ++i) values.emplace_back(std::real(a.at(i, i)), i);
      std::stable_sort(values.begin(), values.end());
      for (int64_t k = 0; k < a.rows; ++k) {
        sorted.at(0, k) = values[k].first;
        for (int64_t i = 0; i < a.rows; ++i) vectors.at(i, k) = v.at(i, values[k].second);
      }
      sign_columns(vectors);
    } else {
      no_result(sorted);
      no_result(vectors);
    }
    w.write(n, sorted);
    if (args.out.size() > 1) Matrices(args.out[1], 2).write(n, vectors);
  });
}

REFERENCE(eig) {
  const Matrices x(args.in[0], 2);
  for_each_matrix(x, x, [&]<typename A>(int64_t k) {
    const MatrixOf<A> a = x.read<A>(k);
    const bool finite = a.finite();
    report(args, 2, k, finite ? 0 : 1, kNotFinite);
    const size_t size = a.rows;
    ComplexVector w(size, kNoResult), v(size * size, kNoResult);
    if (finite) {
      ComplexMatrix m(a.rows, a.rows);
      m.data.assign(a.data.begin(), a.data.end());
      eigen_decompose(m, w, v);
      order_eig(w, v);
    }
    ComplexMatrix values(1, a.rows), vectors(a.rows, a.rows);
    values.data = w;
    vectors.data = v;
    Matrices(args.out[0], 1).write(k, values);
    if (args.out.size() > 1) Matrices(args.out[1], 2).write(k, vectors);
  });
}

}  // namespace anymps
