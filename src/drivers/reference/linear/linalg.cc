// SPDX-License-Identifier: Apache-2.0
// Linear algebra by textbook methods: elimination, Householder's reflections, Jacobi's rotations.
#include "drivers/reference/linear/linalg_eig.h"
#include "drivers/reference/linear/matrices.h"

namespace anymps {

namespace {

// Eliminates a with partial pivoting, doing the same to b. Returns the determinant.
double eliminate(Matrix& a, Matrix& b) {
  double det = 1;
  for (int64_t k = 0; k < a.rows; ++k) {
    int64_t pivot = k;
    for (int64_t i = k + 1; i < a.rows; ++i)
      if (std::abs(a.at(i, k)) > std::abs(a.at(pivot, k))) pivot = i;
    if (a.at(pivot, k) == 0) return 0;
    if (pivot != k) {
      det = -det;
      for (int64_t j = 0; j < a.columns; ++j) std::swap(a.at(k, j), a.at(pivot, j));
      for (int64_t j = 0; j < b.columns; ++j) std::swap(b.at(k, j), b.at(pivot, j));
    }
    det *= a.at(k, k);
    for (int64_t i = k + 1; i < a.rows; ++i) {
      const double factor = a.at(i, k) / a.at(k, k);
      for (int64_t j = k; j < a.columns; ++j) a.at(i, j) -= factor * a.at(k, j);
      for (int64_t j = 0; j < b.columns; ++j) b.at(i, j) -= factor * b.at(k, j);
    }
  }
  return det;
}

// Solves u @ y = b for an upper triangular u.
Matrix substitute(const Matrix& u, Matrix b) {
  for (int64_t j = 0; j < b.columns; ++j)
    for (int64_t i = u.rows - 1; i >= 0; --i) {
      for (int64_t k = i + 1; k < u.rows; ++k) b.at(i, j) -= u.at(i, k) * b.at(k, j);
      b.at(i, j) /= u.at(i, i);
    }
  return b;
}

Matrix solve(const char* op, Matrix a, Matrix b) {
  require(eliminate(a, b) != 0, "[{}] a matrix is singular", op);
  return substitute(a, std::move(b));
}

// Householder's q, square, and r, of x's shape.
std::pair<Matrix, Matrix> householder(Matrix r) {
  Matrix q = Matrix::identity(r.rows);
  for (int64_t k = 0; k < std::min(r.rows - 1, r.columns); ++k) {
    double norm = 0;
    for (int64_t i = k; i < r.rows; ++i) norm += r.at(i, k) * r.at(i, k);
    norm = std::sqrt(norm);
    if (norm == 0) continue;
    std::vector<double> v(static_cast<size_t>(r.rows), 0.0);
    for (int64_t i = k; i < r.rows; ++i) v[static_cast<size_t>(i)] = r.at(i, k);
    v[static_cast<size_t>(k)] += r.at(k, k) < 0 ? -norm : norm;
    double length = 0;
    for (const double x : v) length += x * x;
    for (int64_t j = 0; j < r.columns; ++j) {
      double dot = 0;
      for (int64_t i = k; i < r.rows; ++i) dot += v[static_cast<size_t>(i)] * r.at(i, j);
      for (int64_t i = k; i < r.rows; ++i)
        r.at(i, j) -= 2 * dot / length * v[static_cast<size_t>(i)];
    }
    for (int64_t i = 0; i < q.rows; ++i) {
      double dot = 0;
      for (int64_t j = k; j < q.columns; ++j) dot += q.at(i, j) * v[static_cast<size_t>(j)];
      for (int64_t j = k; j < q.columns; ++j)
        q.at(i, j) -= 2 * dot / length * v[static_cast<size_t>(j)];
    }
    for (int64_t i = k + 1; i < r.rows; ++i) r.at(i, k) = 0;
  }
  sign_qr(q, r);
  return {std::move(q), std::move(r)};
}

Matrix cut(const Matrix& m, int64_t rows, int64_t columns) {
  Matrix part(rows, columns);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) part.at(i, j) = m.at(i, j);
  return part;
}

// Jacobi's method: the columns of v diagonalize a symmetric matrix, which becomes its diagonal.
void jacobi(Matrix& a, Matrix& v) {
  for (int sweep = 0; sweep < 100; ++sweep) {
    double off = 0, all = 0;
    for (int64_t i = 0; i < a.rows; ++i)
      for (int64_t j = 0; j < a.rows; ++j) {
        all += a.at(i, j) * a.at(i, j);
        if (i != j) off += a.at(i, j) * a.at(i, j);
      }
    if (off <= all * 1e-32) return;
    for (int64_t p = 0; p < a.rows; ++p)
      for (int64_t q = p + 1; q < a.rows; ++q) {
        if (a.at(p, q) == 0) continue;
        const double theta = (a.at(q, q) - a.at(p, p)) / (2 * a.at(p, q));
        const double t = (theta < 0 ? -1 : 1) / (std::abs(theta) + std::sqrt(theta * theta + 1));
        const double c = 1 / std::sqrt(t * t + 1), s = t * c;
        const auto turn = [&](double& x, double& y) {
          const double u = c * x - s * y;
          y = s * x + c * y;
          x = u;
        };
        for (int64_t k = 0; k < a.rows; ++k) turn(a.at(k, p), a.at(k, q));
        for (int64_t k = 0; k < a.rows; ++k) turn(a.at(p, k), a.at(q, k));
        for (int64_t k = 0; k < a.rows; ++k) turn(v.at(k, p), v.at(k, q));
      }
  }
}

}  // namespace

REFERENCE(inverse) {
  const Matrices x(args.in[0], 2), y(args.out[0], 2);
  for (int64_t n = 0; n < y.count(); ++n) {
    const Matrix a = x.read(n);
    y.write(n, solve("inverse", a, Matrix::identity(a.rows)));
  }
}

REFERENCE(det) {
  const Matrices x(args.in[0], 2), y(args.out[0], 0);
  for (int64_t n = 0; n < y.count(); ++n) {
    Matrix a = x.read(n), none, result(1, 1);
    none.rows = a.rows;
    result.at(0, 0) = eliminate(a, none);
    y.write(n, result);
  }
}

REFERENCE(solve) {
  const Matrices y(args.out[0], 2), a(args.in[0], 2, y), b(args.in[1], 2, y);
  for (int64_t n = 0; n < y.count(); ++n) y.write(n, solve("solve", a.read(n), b.read(n)));
}

REFERENCE(triangular_solve) {
  const Matrices y(args.out[0], 2), a(args.in[0], 2, y), b(args.in[1], 2, y);
  const bool upper = args.attrs.b("upper"), unit = args.attrs.b("unit_diagonal");
  for (int64_t n = 0; n < y.count(); ++n) {
    Matrix m = a.read(n);
    for (int64_t i = 0; i < m.rows; ++i)
      for (int64_t j = 0; j < m.columns; ++j) {
        if (i == j && unit) m.at(i, j) = 1;
        if (upper ? i > j : i < j) m.at(i, j) = 0;
      }
    for (int64_t i = 0; i < m.rows; ++i)
      require(m.at(i, i) != 0, "[triangular_solve] a matrix is singular");
    y.write(n,
            solve("triangular_solve", args.attrs.b("transpose") ? m.transposed() : m, b.read(n)));
  }
}

REFERENCE(cholesky) {
  const Matrices x(args.in[0], 2), y(args.out[0], 2);
  const bool upper = args.attrs.b("upper");
  for (int64_t n = 0; n < y.count(); ++n) {
    const Matrix a = upper ? x.read(n).transposed() : x.read(n);
    Matrix l(a.rows, a.rows);
    for (int64_t i = 0; i < a.rows; ++i)
      for (int64_t j = 0; j <= i; ++j) {
        double sum = a.at(i, j);
        for (int64_t k = 0; k < j; ++k) sum -= l.at(i, k) * l.at(j, k);
        require(i != j || sum > 0, "[cholesky] a matrix is not positive definite");
        l.at(i, j) = i == j ? std::sqrt(sum) : sum / l.at(j, j);
      }
    y.write(n, upper ? l.transposed() : l);
  }
}

REFERENCE(qr) {
  const Matrices x(args.in[0], 2), q(args.out[0], 2);
  for (int64_t n = 0; n < q.count(); ++n) {
    const auto [full, r] = householder(x.read(n));
    const int64_t inner = q.columns();
    q.write(n, cut(full, full.rows, inner));
    if (args.out.size() > 1) Matrices(args.out[1], 2).write(n, cut(r, inner, r.columns));
  }
}

// One-sided Jacobi: the columns of a tall matrix are turned until they are orthogonal.
REFERENCE(svd) {
  const Matrices x(args.in[0], 2), u_out(args.out[0], 2);
  for (int64_t n = 0; n < u_out.count(); ++n) {
    const Matrix given = x.read(n);
    require(given.finite(), "[svd] a matrix has elements that are not finite");
    const bool wide = given.columns > given.rows;
    Matrix a = wide ? given.transposed() : given, v = Matrix::identity(a.columns);
    for (int sweep = 0; sweep < 100; ++sweep) {
      bool done = true;
      for (int64_t p = 0; p < a.columns; ++p)
        for (int64_t q = p + 1; q < a.columns; ++q) {
          double pp = 0, qq = 0, pq = 0;
          for (int64_t i = 0; i < a.rows; ++i) {
            pp += a.at(i, p) * a.at(i, p);
            qq += a.at(i, q) * a.at(i, q);
            pq += a.at(i, p) * a.at(i, q);
          }
          if (pq * pq <= pp * qq * 1e-30) continue;
          done = false;
          const double theta = (qq - pp) / (2 * pq);
          const double t = (theta < 0 ? -1 : 1) / (std::abs(theta) + std::sqrt(theta * theta + 1));
          const double c = 1 / std::sqrt(t * t + 1), s = t * c;
          for (Matrix* m : {&a, &v})
            for (int64_t i = 0; i < m->rows; ++i) {
              const double x = m->at(i, p), y = m->at(i, q);
              m->at(i, p) = c * x - s * y;
              m->at(i, q) = s * x + c * y;
            }
        }
      if (done) break;
    }
    std::vector<std::pair<double, int64_t>> values;
    for (int64_t j = 0; j < a.columns; ++j) {
      double norm = 0;
      for (int64_t i = 0; i < a.rows; ++i) norm += a.at(i, j) * a.at(i, j);
      values.emplace_back(-std::sqrt(norm), j);
    }
    std::stable_sort(values.begin(), values.end());
    // Left vectors are the columns' directions; those of 0, and those that a square matrix needs
    // besides, are filled up by Householder's reflections.
    Matrix s(1, a.columns), left(a.rows, a.columns), right(a.columns, a.columns);
    for (int64_t k = 0; k < a.columns; ++k) {
      const auto [negative, from] = values[static_cast<size_t>(k)];
      s.at(0, k) = -negative;
      for (int64_t i = 0; i < a.rows; ++i)
        left.at(i, k) = negative == 0 ? 0 : a.at(i, from) / -negative;
      for (int64_t i = 0; i < a.columns; ++i) right.at(i, k) = v.at(i, from);
    }
    const Matrix square = householder(left).first;
    const bool full = args.attrs.b("full_matrices");
    Matrix long_side(a.rows, full ? a.rows : a.columns);
    for (int64_t i = 0; i < a.rows; ++i)
      for (int64_t k = 0; k < long_side.columns; ++k)
        long_side.at(i, k) = k < a.columns && s.at(0, k) > 0 ? left.at(i, k) : square.at(i, k);
    Matrix u = wide ? right : long_side, vh = (wide ? long_side : right).transposed();
    sign_columns(u, &vh);
    u_out.write(n, u);
    if (args.out.size() > 1) Matrices(args.out[1], 1).write(n, s);
    if (args.out.size() > 2) Matrices(args.out[2], 2).write(n, vh);
  }
}

REFERENCE(eigh) {
  const Matrices x(args.in[0], 2), w(args.out[0], 1);
  const bool upper = args.attrs.b("upper");
  for (int64_t n = 0; n < w.count(); ++n) {
    Matrix a = x.read(n), v = Matrix::identity(a.rows);
    for (int64_t i = 0; i < a.rows; ++i)
      for (int64_t j = 0; j < i; ++j)
        (upper ? a.at(i, j) : a.at(j, i)) = upper ? a.at(j, i) : a.at(i, j);
    require(a.finite(), "[eigh] a matrix has elements that are not finite");
    jacobi(a, v);
    std::vector<std::pair<double, int64_t>> values;
    for (int64_t i = 0; i < a.rows; ++i) values.emplace_back(a.at(i, i), i);
    std::stable_sort(values.begin(), values.end());
    Matrix sorted(1, a.rows), vectors(a.rows, a.rows);
    for (int64_t k = 0; k < a.rows; ++k) {
      sorted.at(0, k) = values[static_cast<size_t>(k)].first;
      for (int64_t i = 0; i < a.rows; ++i)
        vectors.at(i, k) = v.at(i, values[static_cast<size_t>(k)].second);
    }
    sign_columns(vectors);
    w.write(n, sorted);
    if (args.out.size() > 1) Matrices(args.out[1], 2).write(n, vectors);
  }
}

REFERENCE(eig) {
  const Matrices x(args.in[0], 2);
  const int64_t count = x.count();
  std::vector<WideComplex> all_w, all_v;
  for (int64_t k = 0; k < count; ++k) {
    const Matrix a = x.read(k);
    require(a.finite(), "[eig] a matrix has elements that are not finite");
    ComplexVector w, v;
    eigen_decompose(a, w, v);
    order_eig(w, v);
    all_w.insert(all_w.end(), w.begin(), w.end());
    all_v.insert(all_v.end(), v.begin(), v.end());
  }
  write_dense(args.out[0], all_w);
  if (args.out.size() > 1) write_dense(args.out[1], all_v);
}

}  // namespace anymps
