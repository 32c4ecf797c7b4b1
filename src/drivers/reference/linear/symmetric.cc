// SPDX-License-Identifier: Apache-2.0
// Cholesky's factors applied, and the factorization of Bunch and Kaufman with LAPACK's choice of
// pivots (sytf2 and hetf2, lower).
#include "drivers/reference/linear/factorize.h"
#include "drivers/reference/linear/matrices.h"

namespace anymps {

namespace {

// m^-1 @ b for m = l @ l^H, or u^H @ u.
template <typename A>
MatrixOf<A> solve_cholesky(const MatrixOf<A>& factor, MatrixOf<A> b, bool upper) {
  const MatrixOf<A> adjoint = factor.adjoint();
  const MatrixOf<A>&first = upper ? adjoint : factor, &second = upper ? factor : adjoint;
  return solve_triangle(second, solve_triangle(first, std::move(b), false, false), true, false);
}

template <typename A>
class BunchKaufman {
 public:
  BunchKaufman(MatrixOf<A> given, bool hermitian) : a(std::move(given)), hermitian_(hermitian) {
    a.keep_triangle(false);
    for (int64_t k = 0; k < a.rows && hermitian; ++k) a.at(k, k) = std::real(a.at(k, k));
    for (int64_t k = 0; k < a.rows;) k += step(k);
  }

  MatrixOf<A> a;
  std::vector<int64_t> pivots;
  int64_t info = 0;

 private:
  A mirrored(const A& x) const { return hermitian_ ? conjugate(x) : x; }
  double diagonal(int64_t i) const {
    return hermitian_ ? std::abs(std::real(a.at(i, i))) : pivot_size(a.at(i, i));
  }

  // Factors a block that begins in row k and returns how many rows it has.
  int64_t step(int64_t k) {
    static const double kLimit = (1 + std::sqrt(17.0)) / 8;
    int64_t most = k;
    double column = 0;
    for (int64_t i = k + 1; i < a.rows; ++i)
      if (pivot_size(a.at(i, k)) > column) column = pivot_size(a.at(most = i, k));
    int64_t exchange = k, size = 1;
    if (std::max(diagonal(k), column) == 0 || std::isnan(diagonal(k))) {
      if (info == 0) info = k + 1;
      pivots.push_back(k + 1);
      return 1;
    }
    if (diagonal(k) < kLimit * column) {
      double row = 0;
      for (int64_t j = k; j < most; ++j) row = std::max(row, pivot_size(a.at(most, j)));
      for (int64_t i = most + 1; i < a.rows; ++i) row = std::max(row, pivot_size(a.at(i, most)));
      if (diagonal(k) < kLimit * column * (column / row)) {
        exchange = most;
        if (diagonal(most) < kLimit * row) size = 2;
      }
    }
    swap(k + size - 1, exchange, k);
    size == 1 ? eliminate_one(k) : eliminate_two(k);
    for (int64_t i = 0; i < size; ++i) pivots.push_back(size == 1 ? exchange + 1 : -exchange - 1);
    return size;
  }

  // Rows and columns p < q of what is left are exchanged; k is where the block begins.
  void swap(int64_t p, int64_t q, int64_t k) {
    if (p == q) return;
    for (int64_t i = q + 1; i < a.rows; ++i) std::swap(a.at(i, p), a.at(i, q));
    for (int64_t j = p + 1; j < q; ++j) {
      const A x = mirrored(a.at(j, p));
      a.at(j, p) = mirrored(a.at(q, j));
      a.at(q, j) = x;
    }
    a.at(q, p) = mirrored(a.at(q, p));
    std::swap(a.at(p, p), a.at(q, q));
    if (p != k) std::swap(a.at(p, k), a.at(q, k));
  }

  void eliminate_one(int64_t k) {
    const A d = a.at(k, k);
    for (int64_t j = k + 1; j < a.rows; ++j)
      for (int64_t i = j; i < a.rows; ++i) a.at(i, j) -= a.at(i, k) * mirrored(a.at(j, k)) / d;
    for (int64_t i = k + 1; i < a.rows; ++i) a.at(i, k) /= d;
    real_diagonal(k + 1);
  }

  // With the block d: the columns w of l solve w @ d = [a[:, k], a[:, k+1]].
  void eliminate_two(int64_t k) {
    const A d11 = a.at(k, k), d21 = a.at(k + 1, k), d12 = mirrored(d21), d22 = a.at(k + 1, k + 1);
    const A det = d11 * d22 - d21 * d12;
    for (int64_t j = k + 2; j < a.rows; ++j) {
      const A x = a.at(j, k), y = a.at(j, k + 1);
      const A wx = (x * d22 - y * d21) / det, wy = (y * d11 - x * d12) / det;
      for (int64_t i = j; i < a.rows; ++i)
        a.at(i, j) -= a.at(i, k) * mirrored(wx) + a.at(i, k + 1) * mirrored(wy);
      a.at(j, k) = wx;
      a.at(j, k + 1) = wy;
    }
    real_diagonal(k + 2);
  }
  void real_diagonal(int64_t from) {
    for (int64_t i = from; i < a.rows && hermitian_; ++i) a.at(i, i) = std::real(a.at(i, i));
  }

  bool hermitian_;
};

template <typename A>
void swap_rows(MatrixOf<A>& m, int64_t i, int64_t j) {
  require(j >= 0 && j < m.rows, "[ldl_solve] pivot {} is not in [1, {}]", j + 1, m.rows);
  for (int64_t c = 0; c < m.columns && i != j; ++c) std::swap(m.at(i, c), m.at(j, c));
}

// b becomes the solution: l, d and l^T, or l^H, one after the other, with the rows exchanged.
template <typename A>
void solve_ldl(const MatrixOf<A>& a, const std::vector<int64_t>& pivots, MatrixOf<A>& b,
               bool hermitian) {
  const auto mirrored = [&](const A& x) { return hermitian ? conjugate(x) : x; };
  std::vector<std::pair<int64_t, int64_t>> blocks;  // where each begins, and how many rows
  for (int64_t k = 0; k < a.rows; k += blocks.back().second)
    blocks.emplace_back(k, pivots[k] < 0 ? 2 : 1);
  require(blocks.empty() || blocks.back().first + blocks.back().second == a.rows,
          "[ldl_solve] the pivots end within a block of 2 rows");
  const auto other = [&](const auto& block) {
    return std::abs(pivots[block.first + block.second - 1]) - 1;
  };
  for (const auto& block : blocks) {
    const auto [k, size] = block;
    swap_rows(b, k + size - 1, other(block));
    for (int64_t c = 0; c < b.columns; ++c) {
      for (int64_t i = k + size; i < a.rows; ++i)
        for (int64_t j = k; j < k + size; ++j) b.at(i, c) -= a.at(i, j) * b.at(j, c);
      if (size == 1) {
        b.at(k, c) /= a.at(k, k);
        continue;
      }
      const A d11 = a.at(k, k), d21 = a.at(k + 1, k), d12 = mirrored(d21), d22 = a.at(k + 1, k + 1);
      const A det = d11 * d22 - d21 * d12, x = b.at(k, c), y = b.at(k + 1, c);
      b.at(k, c) = (d22 * x - d12 * y) / det;
      b.at(k + 1, c) = (d11 * y - d21 * x) / det;
    }
  }
  for (size_t at = blocks.size(); at-- > 0;) {
    const auto [k, size] = blocks[at];
    for (int64_t c = 0; c < b.columns; ++c)
      for (int64_t j = k; j < k + size; ++j)
        for (int64_t i = k + size; i < a.rows; ++i) b.at(j, c) -= mirrored(a.at(i, j)) * b.at(i, c);
    swap_rows(b, k + size - 1, other(blocks[at]));
  }
}

}  // namespace

REFERENCE(cholesky_solve) {
  const Matrices y(args.out[0], 2), b(args.in[0], 2, y), factor(args.in[1], 2, y);
  const bool upper = args.attrs.b("upper");
  with_matrix_type(b.dtype(), [&]<typename A>() {
    for (int64_t n = 0; n < y.count(); ++n)
      y.write(n, solve_cholesky(factor.read<A>(n), b.read<A>(n), upper));
  });
}

REFERENCE(cholesky_inverse) {
  const Matrices y(args.out[0], 2), factor(args.in[0], 2);
  const bool upper = args.attrs.b("upper");
  with_matrix_type(y.dtype(), [&]<typename A>() {
    for (int64_t n = 0; n < y.count(); ++n)
      y.write(n, solve_cholesky(factor.read<A>(n), MatrixOf<A>::identity(factor.rows()), upper));
  });
}

REFERENCE(ldl_factor) {
  const Matrices x(args.in[0], 2), ld(args.out[0], 2);
  const bool hermitian = args.attrs.b("hermitian");
  for_each_matrix(x, ld, [&]<typename A>(int64_t n) {
    const BunchKaufman<A> f(x.read<A>(n), hermitian);
    report(args, 2, n, f.info, "is singular");
    ld.write(n, f.a);
    if (args.out.size() > 1) Matrices(args.out[1], 1).write_ints(n, f.pivots);
  });
}

REFERENCE(ldl_solve) {
  const Matrices y(args.out[0], 2), ld(args.in[0], 2, y), pivots(args.in[1], 1, y),
      b(args.in[2], 2, y);
  const bool hermitian = args.attrs.b("hermitian");
  for_each_matrix(y, y, [&]<typename A>(int64_t n) {
    MatrixOf<A> a = ld.read<A>(n), right = b.read<A>(n);
    for (int64_t i = 0; i < a.rows && hermitian; ++i) a.at(i, i) = std::real(a.at(i, i));
    solve_ldl(a, pivots.ints(n), right, hermitian);
    y.write(n, right);
  });
}

}  // namespace anymps
