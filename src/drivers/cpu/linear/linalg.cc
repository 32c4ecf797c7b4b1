// SPDX-License-Identifier: Apache-2.0
// Linear algebra with LAPACK, in double, the matrices of a batch in parallel. Signs and orders are
// made those of semantics/factors.h.
#include <functional>

#include "drivers/cpu/cpu_kernel.h"
#include "drivers/cpu/linear/lapack.h"
#include "drivers/cpu/threads.h"
#include "semantics/factors.h"

namespace anymps::cpu {

namespace {

// A tensor as a batch of matrices, vectors or numbers.
class Batch {
 public:
  Batch() = default;
  // `axes` of the last axes belong to one element; the batch is broadcast to `like`.
  Batch(const TensorDesc& desc, size_t axes, const Shape& like) : desc_(desc), axes_(axes) {
    const size_t own = desc.shape.size() - axes, skip = like.size() - own;
    batch_ = like;
    steps_ = Strides(like.size(), 0);
    for (size_t i = 0; i < own; ++i)
      if (desc.shape[i] != 1) steps_[skip + i] = desc.strides[i];
  }
  int64_t rows() const { return axes_ < 2 ? 1 : desc_.shape[desc_.shape.size() - 2]; }
  int64_t columns() const { return axes_ < 1 ? 1 : desc_.shape.back(); }

  // The n-th matrix, transposed if asked for: a row-major Matrix is a column-major transpose.
  Matrix read(const void* data, int64_t n, bool transposed) const {
    Matrix m(transposed ? columns() : rows(), transposed ? rows() : columns());
    dispatch<kFloat>(desc_.dtype, [&]<typename T>() {
      const T* from = static_cast<const T*>(data) + offset(n);
      const int64_t row = row_step(), column = column_step();
      for (int64_t i = 0; i < rows(); ++i)
        for (int64_t j = 0; j < columns(); ++j)
          (transposed ? m.at(j, i) : m.at(i, j)) =
              static_cast<double>(static_cast<Compute<T>>(from[i * row + j * column]));
    });
    return m;
  }
  void write(void* data, int64_t n, const Matrix& m, bool transposed) const {
    dispatch<kFloat>(desc_.dtype, [&]<typename T>() {
      T* to = static_cast<T*>(data) + offset(n);
      const int64_t row = row_step(), column = column_step();
      for (int64_t i = 0; i < rows(); ++i)
        for (int64_t j = 0; j < columns(); ++j)
          to[i * row + j * column] =
              static_cast<T>(static_cast<Compute<T>>(transposed ? m.at(j, i) : m.at(i, j)));
    });
  }
  void write(void* data, int64_t n, const ComplexVector& values) const {
    Complex* to = static_cast<Complex*>(data) + offset(n);
    for (int64_t i = 0; i < rows(); ++i)
      for (int64_t j = 0; j < columns(); ++j)
        to[i * row_step() + j * column_step()] = Complex(values[i * columns() + j]);
  }

 private:
  int64_t column_step() const { return axes_ < 1 ? 0 : desc_.strides.back(); }
  int64_t row_step() const { return axes_ < 2 ? 0 : desc_.strides[desc_.strides.size() - 2]; }
  int64_t offset(int64_t n) const {
    int64_t at = 0;
    for (size_t i = batch_.size(); i-- > 0; n /= batch_[i]) at += n % batch_[i] * steps_[i];
    return at;
  }

  TensorDesc desc_;
  size_t axes_ = 0;
  Shape batch_;
  Strides steps_;
};

// What an op does with one element of the batch: in holds its matrices transposed, as LAPACK wants
// them.
struct Problem {
  const char* op;
  std::vector<Matrix> in;
};

int as_int(int64_t value, const char* op) {
  require(value <= INT32_MAX / 64, "[{}] an extent of {} is too large", op, value);
  return static_cast<int>(value);
}

// The pivots; a's factors replace it. Returns whether a is regular.
bool factor(Matrix& a, std::vector<int>& pivots, const char* op) {
  const int n = as_int(a.rows, op);
  int info = 0;
  pivots.assign(static_cast<size_t>(n), 0);
  if (n > 0) dgetrf_(&n, &n, a.data.data(), &n, pivots.data(), &info);
  return info == 0;
}

// b, transposed, becomes the solution, transposed.
void solve(Problem& p, Matrix& b) {
  Matrix& a = p.in[0];
  std::vector<int> pivots;
  require(factor(a, pivots, p.op), "[{}] a matrix is singular", p.op);
  const int n = as_int(a.rows, p.op), columns = as_int(b.rows, p.op);
  int info = 0;
  if (n > 0 && columns > 0)
    dgetrs_("N", &n, &columns, a.data.data(), &n, pivots.data(), b.data.data(), &n, &info);
}

double determinant(Problem& p) {
  Matrix& a = p.in[0];
  std::vector<int> pivots;
  if (!factor(a, pivots, p.op)) return 0;
  double det = 1;
  for (int64_t i = 0; i < a.rows; ++i) det *= pivots[i] == i + 1 ? a.at(i, i) : -a.at(i, i);
  return det;
}

void triangular_solve(Problem& p, const Attrs& attrs) {
  Matrix &a = p.in[0], &b = p.in[1];
  const bool unit = attrs.b("unit_diagonal");
  for (int64_t i = 0; i < a.rows; ++i)
    require(unit || a.at(i, i) != 0, "[triangular_solve] a matrix is singular");
  const int n = as_int(a.rows, p.op), columns = as_int(b.rows, p.op);
  int info = 0;
  if (n > 0 && columns > 0)
    dtrtrs_(attrs.b("upper") ? "U" : "L", attrs.b("transpose") ? "T" : "N", unit ? "U" : "N", &n,
            &columns, a.data.data(), &n, b.data.data(), &n, &info);
}

void cholesky(Problem& p, bool upper) {
  Matrix& a = p.in[0];
  const int n = as_int(a.rows, p.op);
  int info = 0;
  if (n > 0) dpotrf_(upper ? "U" : "L", &n, a.data.data(), &n, &info);
  require(info == 0, "[cholesky] a matrix is not positive definite");
  for (int64_t i = 0; i < a.rows; ++i)  // a is transposed here
    for (int64_t j = 0; j < a.columns; ++j)
      if (upper ? i < j : i > j) a.at(i, j) = 0;
}

// A workspace of the size that a first call, which only asks, returns.
template <typename Call>
void with_workspace(Call&& call) {
  double size = 0;
  int ask = -1;
  call(&size, &ask);
  int count = std::max(1, static_cast<int>(size));
  std::vector<double> work(static_cast<size_t>(count));
  call(work.data(), &count);
}

// q, with `inner` columns, and r.
std::pair<Matrix, Matrix> qr(Problem& p, int64_t inner) {
  const Matrix& given = p.in[0];
  const int m = as_int(given.columns, p.op), n = as_int(given.rows, p.op);
  const int k = std::min(m, n), columns = as_int(inner, p.op);
  std::vector<double> tau(static_cast<size_t>(std::max(1, k))),
      a(static_cast<size_t>(m) * static_cast<size_t>(std::max(n, columns)));
  std::copy(given.data.begin(), given.data.end(), a.begin());
  int info = 0;
  Matrix q(m, inner), r(inner, n);
  if (m == 0) return {q, r};
  if (k > 0)
    with_workspace([&](double* work, int* size) {
      dgeqrf_(&m, &n, a.data(), &m, tau.data(), work, size, &info);
    });
  for (int64_t i = 0; i < inner; ++i)
    for (int64_t j = i; j < n; ++j) r.at(i, j) = a[j * m + i];
  if (columns > 0)
    with_workspace([&](double* work, int* size) {
      dorgqr_(&m, &columns, &k, a.data(), &m, tau.data(), work, size, &info);
    });
  require(info == 0, "[qr] LAPACK reports {}", info);
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < inner; ++j) q.at(i, j) = a[j * m + i];
  sign_qr(q, r);
  return {std::move(q), std::move(r)};
}

struct Svd {
  Matrix u, s, vh;
};

Svd svd(Problem& p, bool full) {
  Matrix& a = p.in[0];
  require(a.finite(), "[svd] a matrix has elements that are not finite");
  const int m = as_int(a.columns, p.op), n = as_int(a.rows, p.op), k = std::min(m, n);
  const int left = full ? m : k, right = full ? n : k;
  Matrix u(left, m), s(1, k), vh(n, right);  // transposed
  if (k == 0) {
    u = full ? Matrix::identity(m) : Matrix(0, m);
    vh = full ? Matrix::identity(n) : Matrix(n, 0);
  } else {
    std::vector<int> iwork(static_cast<size_t>(8 * k));
    int info = 0;
    with_workspace([&](double* work, int* size) {
      dgesdd_(full ? "A" : "S", &m, &n, a.data.data(), &m, s.data.data(), u.data.data(), &m,
              vh.data.data(), &right, work, size, iwork.data(), &info);
    });
    require(info == 0, "[svd] the iteration does not converge");
  }
  Svd result{u.transposed(), std::move(s), vh.transposed()};
  sign_columns(result.u, &result.vh);
  return result;
}

std::pair<Matrix, Matrix> eigh(Problem& p, bool upper) {
  Matrix& a = p.in[0];
  for (int64_t i = 0; i < a.rows; ++i)  // a is transposed here
    for (int64_t j = 0; j < i; ++j)
      require(std::isfinite(upper ? a.at(i, j) : a.at(j, i)) && std::isfinite(a.at(i, i)),
              "[eigh] a matrix has elements that are not finite");
  const int n = as_int(a.rows, p.op);
  Matrix w(1, n);
  if (n == 0) return {w, a};
  require(std::isfinite(a.at(0, 0)), "[eigh] a matrix has elements that are not finite");
  int info = 0, ask = -1, ints = 0;
  double doubles = 0;
  dsyevd_("V", upper ? "U" : "L", &n, a.data.data(), &n, w.data.data(), &doubles, &ask, &ints, &ask,
          &info);
  int size = std::max(1, static_cast<int>(doubles));
  ints = std::max(1, ints);
  std::vector<double> work(static_cast<size_t>(size));
  std::vector<int> iwork(static_cast<size_t>(ints));
  dsyevd_("V", upper ? "U" : "L", &n, a.data.data(), &n, w.data.data(), work.data(), &size,
          iwork.data(), &ints, &info);
  require(info == 0, "[eigh] the iteration does not converge");
  Matrix v = a.transposed();
  sign_columns(v);
  return {std::move(w), std::move(v)};
}

std::pair<ComplexVector, ComplexVector> eig(Problem& p) {
  Matrix& a = p.in[0];
  require(a.finite(), "[eig] a matrix has elements that are not finite");
  const int n = as_int(a.rows, p.op), one = 1;
  const auto size = static_cast<size_t>(n);
  std::vector<double> real(size), imaginary(size), right(size * size);
  int info = 0;
  if (n > 0)
    with_workspace([&](double* work, int* count) {
      dgeev_("N", "V", &n, a.data.data(), &n, real.data(), imaginary.data(), nullptr, &one,
             right.data(), &n, work, count, &info);
    });
  require(info == 0, "[eig] the iteration does not converge");
  ComplexVector w(size), v(size * size);
  for (size_t k = 0; k < size; ++k) {
    w[k] = {real[k], imaginary[k]};
    for (size_t i = 0; i < size; ++i) {
      if (imaginary[k] == 0) {
        v[i * size + k] = right[k * size + i];
      } else if (imaginary[k] > 0) {  // a pair: this column and the next are its parts
        v[i * size + k] = {right[k * size + i], right[(k + 1) * size + i]};
        v[i * size + k + 1] = std::conj(v[i * size + k]);
      }
    }
  }
  order_eig(w, v);
  return {std::move(w), std::move(v)};
}

using Run = std::function<void(Problem& problem, const std::vector<Batch>& out,
                               void* const* outputs, int64_t n)>;

// A kernel that runs `run` for each element of the batch; `axes` are those of the outputs.
KernelPtr make_batched(const KernelRequest& request, std::vector<size_t> axes, Run run) {
  Shape batch(request.out().shape.begin(),
              request.out().shape.end() - static_cast<std::ptrdiff_t>(axes[0]));
  std::vector<Batch> in, out;
  for (size_t i = 0; i < request.inputs.size(); ++i) in.emplace_back(request.in(i), 2, batch);
  for (size_t i = 0; i < request.outputs.size(); ++i)
    out.emplace_back(request.out(i), axes[i], batch);
  const auto n = static_cast<double>(in[0].rows() + 1);
  return make_kernel([=, name = request.op->name.c_str(), count = element_count(batch),
                      run = std::move(run)](const KernelArgs& args) {
    parallel_for(0, count, n * n * n + 2000, [&](int64_t begin, int64_t end) {
      for (int64_t k = begin; k < end; ++k) {
        Problem problem{name, {}};
        for (size_t i = 0; i < in.size(); ++i)
          problem.in.push_back(in[i].read(args.inputs[i], k, true));
        run(problem, out, args.outputs, k);
      }
    });
  });
}

CPU_KERNEL(inverse, "lapack") {
  return make_batched(request, {2}, [](Problem& p, const auto& out, void* const* to, int64_t n) {
    Matrix b = Matrix::identity(p.in[0].rows);
    solve(p, b);
    out[0].write(to[0], n, b, true);
  });
}

CPU_KERNEL(det, "lapack") {
  return make_batched(request, {0}, [](Problem& p, const auto& out, void* const* to, int64_t n) {
    Matrix result(1, 1);
    result.at(0, 0) = determinant(p);
    out[0].write(to[0], n, result, false);
  });
}

CPU_KERNEL(solve, "lapack") {
  return make_batched(request, {2}, [](Problem& p, const auto& out, void* const* to, int64_t n) {
    solve(p, p.in[1]);
    out[0].write(to[0], n, p.in[1], true);
  });
}

CPU_KERNEL(triangular_solve, "lapack") {
  return make_batched(
      request, {2},
      [attrs = request.attrs](Problem& p, const auto& out, void* const* to, int64_t n) {
        triangular_solve(p, attrs);
        out[0].write(to[0], n, p.in[1], true);
      });
}

CPU_KERNEL(cholesky, "lapack") {
  return make_batched(
      request, {2},
      [upper = request.attrs.b("upper")](Problem& p, const auto& out, void* const* to, int64_t n) {
        cholesky(p, upper);
        out[0].write(to[0], n, p.in[0], true);
      });
}

CPU_KERNEL(qr, "lapack") {
  return make_batched(request, {2, 2}, [](Problem& p, const auto& out, void* const* to, int64_t n) {
    const auto [q, r] = qr(p, out[0].columns());
    out[0].write(to[0], n, q, false);
    if (out.size() > 1) out[1].write(to[1], n, r, false);
  });
}

CPU_KERNEL(svd, "lapack") {
  return make_batched(request, {2, 1, 2},
                      [full = request.attrs.b("full_matrices")](Problem& p, const auto& out,
                                                                void* const* to, int64_t n) {
                        const Svd result = svd(p, full);
                        out[0].write(to[0], n, result.u, false);
                        if (out.size() > 1) out[1].write(to[1], n, result.s, false);
                        if (out.size() > 2) out[2].write(to[2], n, result.vh, false);
                      });
}

CPU_KERNEL(eigh, "lapack") {
  return make_batched(
      request, {1, 2},
      [upper = request.attrs.b("upper")](Problem& p, const auto& out, void* const* to, int64_t n) {
        const auto [w, v] = eigh(p, upper);
        out[0].write(to[0], n, w, false);
        if (out.size() > 1) out[1].write(to[1], n, v, false);
      });
}

CPU_KERNEL(eig, "lapack") {
  return make_batched(request, {1, 2}, [](Problem& p, const auto& out, void* const* to, int64_t n) {
    const auto [w, v] = eig(p);
    out[0].write(to[0], n, w);
    if (out.size() > 1) out[1].write(to[1], n, v);
  });
}

}  // namespace

}  // namespace anymps::cpu
