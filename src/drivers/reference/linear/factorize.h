// SPDX-License-Identifier: Apache-2.0
// Factorizations by textbook methods, for real and complex matrices: elimination, Householder's
// reflections, Jacobi's rotations. Packed forms and signs of reflections are LAPACK's.
#pragma once

#include "base/error.h"
#include "semantics/factors.h"

namespace anymps {

template <typename A>
struct LuFactors {
  MatrixOf<A> lu;               // l without its diagonal of ones, and u
  std::vector<int64_t> pivots;  // row i was exchanged with row pivots[i] - 1
  int64_t info = 0;             // the first pivot that is 0, counted from 1; 0: none
};

template <typename A>
LuFactors<A> lu_factors(MatrixOf<A> a, bool pivot = true) {
  const int64_t inner = std::min(a.rows, a.columns);
  LuFactors<A> result;
  for (int64_t k = 0; k < inner; ++k) {
    int64_t best = k;
    for (int64_t i = k + 1; i < a.rows && pivot; ++i)
      if (pivot_size(a.at(i, k)) > pivot_size(a.at(best, k))) best = i;
    result.pivots.push_back(best + 1);
    if (a.at(best, k) == A(0)) {
      if (result.info == 0) result.info = k + 1;
      continue;
    }
    for (int64_t j = 0; j < a.columns && best != k; ++j) std::swap(a.at(k, j), a.at(best, j));
    for (int64_t i = k + 1; i < a.rows; ++i) {
      a.at(i, k) /= a.at(k, k);
      for (int64_t j = k + 1; j < a.columns; ++j) a.at(i, j) -= a.at(i, k) * a.at(k, j);
    }
  }
  result.lu = std::move(a);
  return result;
}

// Solves t @ y = b with one triangle of t.
template <typename A>
MatrixOf<A> solve_triangle(const MatrixOf<A>& t, MatrixOf<A> b, bool upper, bool unit) {
  for (int64_t j = 0; j < b.columns; ++j)
    for (int64_t step = 0; step < t.rows; ++step) {
      const int64_t i = upper ? t.rows - 1 - step : step;
      for (int64_t k = upper ? i + 1 : 0; k < (upper ? t.rows : i); ++k)
        b.at(i, j) -= t.at(i, k) * b.at(k, j);
      if (!unit) b.at(i, j) /= t.at(i, i);
    }
  return b;
}

// Exchanges rows as pivots say, or back.
template <typename A>
void exchange_rows(MatrixOf<A>& b, const std::vector<int64_t>& pivots, bool back) {
  const auto count = std::ssize(pivots);
  for (int64_t step = 0; step < count; ++step) {
    const int64_t i = back ? count - 1 - step : step, other = pivots[i] - 1;
    require(other >= 0 && other < b.rows, "[lu] pivot {} is not in [1, {}]", other + 1, b.rows);
    for (int64_t j = 0; j < b.columns && other != i; ++j) std::swap(b.at(i, j), b.at(other, j));
  }
}

template <typename A>
MatrixOf<A> solve_lu(const LuFactors<A>& f, MatrixOf<A> b) {
  exchange_rows(b, f.pivots, false);
  return solve_triangle(f.lu, solve_triangle(f.lu, std::move(b), false, true), true, false);
}
// The same for the conjugate transpose of what was factored.
template <typename A>
MatrixOf<A> solve_lu_adjoint(const LuFactors<A>& f, MatrixOf<A> b) {
  const MatrixOf<A> adjoint = f.lu.adjoint();
  b = solve_triangle(adjoint, solve_triangle(adjoint, std::move(b), false, false), true, true);
  exchange_rows(b, f.pivots, true);
  return b;
}

template <typename A>
MatrixOf<A> product(const MatrixOf<A>& a, const MatrixOf<A>& b) {
  MatrixOf<A> c(a.rows, b.columns);
  for (int64_t i = 0; i < a.rows; ++i)
    for (int64_t j = 0; j < b.columns; ++j)
      for (int64_t k = 0; k < a.columns; ++k) c.at(i, j) += a.at(i, k) * b.at(k, j);
  return c;
}

// x and y become what one more rotation of Jacobi's makes of them; y is turned to be real first.
template <typename A>
struct Rotation {
  double c = 1, s = 0;
  A turn = 1;

  // That makes the inner product pq of two columns with squares pp and qq vanish.
  Rotation(double pp, double qq, const A& pq) : turn(conjugate(direction(pq))) {
    const double theta = (qq - pp) / (2 * std::abs(pq));
    const double t = (theta < 0 ? -1 : 1) / (std::abs(theta) + std::sqrt(theta * theta + 1));
    c = 1 / std::sqrt(t * t + 1);
    s = t * c;
  }
  void columns(MatrixOf<A>& m, int64_t p, int64_t q) const {
    for (int64_t i = 0; i < m.rows; ++i) {
      const A x = m.at(i, p), y = m.at(i, q) * turn;
      m.at(i, p) = c * x - s * y;
      m.at(i, q) = s * x + c * y;
    }
  }
  void rows(MatrixOf<A>& m, int64_t p, int64_t q) const {
    for (int64_t j = 0; j < m.columns; ++j) {
      const A x = m.at(p, j), y = m.at(q, j) * conjugate(turn);
      m.at(p, j) = c * x - s * y;
      m.at(q, j) = s * x + c * y;
    }
  }
};

template <typename A>
struct Reflections {
  MatrixOf<A> packed;  // r, and below its diagonal the vectors without the 1 in front
  std::vector<A> tau;
};

// As LAPACK's geqrf: (1 - tau[k]^* v v^H) makes column k of what is left real, with the sign that
// loses no digits.
template <typename A>
Reflections<A> reflect(MatrixOf<A> a) {
  Reflections<A> result;
  for (int64_t k = 0; k < std::min(a.rows, a.columns); ++k) {
    double rest = 0;
    for (int64_t i = k + 1; i < a.rows; ++i) rest += std::norm(a.at(i, k));
    const A alpha = a.at(k, k);
    const double imaginary = std::imag(alpha);
    if (rest == 0 && imaginary == 0) {
      result.tau.push_back(0);
      continue;
    }
    const double norm = std::sqrt(rest + std::norm(alpha));
    const double beta = std::signbit(std::real(alpha)) ? norm : -norm;
    const A tau = (beta - alpha) / beta;
    for (int64_t i = k + 1; i < a.rows; ++i) a.at(i, k) /= alpha - beta;
    a.at(k, k) = beta;
    for (int64_t j = k + 1; j < a.columns; ++j) {
      A dot = a.at(k, j);
      for (int64_t i = k + 1; i < a.rows; ++i) dot += conjugate(a.at(i, k)) * a.at(i, j);
      dot *= conjugate(tau);
      a.at(k, j) -= dot;
      for (int64_t i = k + 1; i < a.rows; ++i) a.at(i, j) -= dot * a.at(i, k);
    }
    result.tau.push_back(tau);
  }
  result.packed = std::move(a);
  return result;
}

// m becomes q @ m, or q^H @ m: q is the product of (1 - tau[k] v v^H), square.
template <typename A>
void apply_reflections(const Reflections<A>& r, MatrixOf<A>& m, bool adjoint) {
  const auto count = std::ssize(r.tau);
  for (int64_t step = 0; step < count; ++step) {
    const int64_t k = adjoint ? step : count - 1 - step;
    const A given = r.tau[k], tau = adjoint ? conjugate(given) : given;
    for (int64_t j = 0; j < m.columns; ++j) {
      A dot = m.at(k, j);
      for (int64_t i = k + 1; i < m.rows; ++i) dot += conjugate(r.packed.at(i, k)) * m.at(i, j);
      dot *= tau;
      m.at(k, j) -= dot;
      for (int64_t i = k + 1; i < m.rows; ++i) m.at(i, j) -= dot * r.packed.at(i, k);
    }
  }
}

// q, square, and r, of x's shape, with the signs of LAPACK's.
template <typename A>
std::pair<MatrixOf<A>, MatrixOf<A>> householder(const MatrixOf<A>& x) {
  Reflections<A> reflections = reflect(x);
  MatrixOf<A> q = MatrixOf<A>::identity(x.rows);
  apply_reflections(reflections, q, false);
  reflections.packed.keep_triangle(true);
  return {std::move(q), std::move(reflections.packed)};
}

template <typename A>
struct SvdFactors {
  MatrixOf<A> u, vh;
  Matrix s;
};

// One-sided Jacobi: rotations of columns until they are orthogonal.
template <typename A>
SvdFactors<A> singular_values(const MatrixOf<A>& given, bool full) {
  const bool wide = given.columns > given.rows;
  MatrixOf<A> a = wide ? given.adjoint() : given, v = MatrixOf<A>::identity(a.columns);
  for (int sweep = 0; sweep < 100; ++sweep) {
    bool done = true;
    for (int64_t p = 0; p < a.columns; ++p)
      for (int64_t q = p + 1; q < a.columns; ++q) {
        double pp = 0, qq = 0;
        A pq = 0;
        for (int64_t i = 0; i < a.rows; ++i) {
          pp += std::norm(a.at(i, p));
          qq += std::norm(a.at(i, q));
          pq += conjugate(a.at(i, p)) * a.at(i, q);
        }
        if (std::norm(pq) <= pp * qq * 1e-30) continue;
        done = false;
        const Rotation<A> rotation(pp, qq, pq);
        rotation.columns(a, p, q);
        rotation.columns(v, p, q);
      }
    if (done) break;
  }
  std::vector<std::pair<double, int64_t>> values;
  for (int64_t j = 0; j < a.columns; ++j) {
    double norm = 0;
    for (int64_t i = 0; i < a.rows; ++i) norm += std::norm(a.at(i, j));
    values.emplace_back(-std::sqrt(norm), j);
  }
  std::stable_sort(values.begin(), values.end());
  // Left vectors are the columns' directions; those of 0, and those that a square matrix needs
  // besides, are filled up by Householder's reflections.
  Matrix s(1, a.columns);
  MatrixOf<A> left(a.rows, a.columns), right(a.columns, a.columns);
  for (int64_t k = 0; k < a.columns; ++k) {
    const auto [negative, from] = values[k];
    s.at(0, k) = -negative;
    for (int64_t i = 0; i < a.rows; ++i)
      left.at(i, k) = negative == 0 ? A(0) : a.at(i, from) / -negative;
    for (int64_t i = 0; i < a.columns; ++i) right.at(i, k) = v.at(i, from);
  }
  const MatrixOf<A> square = householder(left).first;
  MatrixOf<A> side(a.rows, full ? a.rows : a.columns);
  for (int64_t i = 0; i < a.rows; ++i)
    for (int64_t k = 0; k < side.columns; ++k)
      side.at(i, k) = k < a.columns && s.at(0, k) > 0 ? left.at(i, k) : square.at(i, k);
  return {wide ? right : side, (wide ? side : right).adjoint(), std::move(s)};
}

// Jacobi's method: the columns of v diagonalize a Hermitian matrix, which becomes its diagonal.
template <typename A>
void jacobi(MatrixOf<A>& a, MatrixOf<A>& v) {
  for (int sweep = 0; sweep < 100; ++sweep) {
    double off = 0, all = 0;
    for (int64_t i = 0; i < a.rows; ++i)
      for (int64_t j = 0; j < a.rows; ++j) {
        all += std::norm(a.at(i, j));
        if (i != j) off += std::norm(a.at(i, j));
      }
    if (off <= all * 1e-32) return;
    for (int64_t p = 0; p < a.rows; ++p)
      for (int64_t q = p + 1; q < a.rows; ++q) {
        if (a.at(p, q) == A(0)) continue;
        const Rotation<A> rotation(std::real(a.at(p, p)), std::real(a.at(q, q)), a.at(p, q));
        rotation.columns(a, p, q);
        rotation.rows(a, p, q);
        rotation.columns(v, p, q);
      }
  }
}

}  // namespace anymps
