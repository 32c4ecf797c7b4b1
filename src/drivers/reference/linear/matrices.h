// SPDX-License-Identifier: Apache-2.0
// A strided tensor as a batch of matrices, vectors or numbers in double or complex double.
#pragma once

#include "drivers/reference/dense.h"
#include "drivers/reference/move.h"
#include "semantics/factors.h"

namespace anymps {

class Matrices {
 public:
  // `axes`: how many of the last axes belong to one element of the batch (0 to 2).
  Matrices(const View& view, size_t axes) : view_(view), axes_(axes) {
    for (size_t i = 0; i + axes < view.shape().size(); ++i) batch_.push_back(view.shape()[i]);
  }
  // As many as `like` has: the batch is broadcast.
  Matrices(const View& view, size_t axes, const Matrices& like)
      : view_(view), axes_(axes), batch_(like.batch_) {}

  DType dtype() const { return view_.dtype; }
  int64_t count() const { return element_count(batch_); }
  int64_t columns() const { return axes_ == 0 ? 1 : view_.shape().back(); }
  int64_t rows() const { return axes_ < 2 ? 1 : view_.shape()[view_.shape().size() - 2]; }

  template <typename A = double>
  MatrixOf<A> read(int64_t n) const {
    MatrixOf<A> m(rows(), columns());
    dispatch<std::is_same_v<A, double> ? kFloat : kComplex>(view_.dtype, [&]<typename T>() {
      for (int64_t i = 0; i < m.rows; ++i)
        for (int64_t j = 0; j < m.columns; ++j)
          m.at(i, j) = static_cast<A>(static_cast<Compute<T>>(view_.as<T>()[offset(n, i, j)]));
    });
    return m;
  }
  template <typename A>
  void write(int64_t n, const MatrixOf<A>& m) const {
    dispatch<std::is_same_v<A, double> ? kFloat : kComplex>(view_.dtype, [&]<typename T>() {
      for (int64_t i = 0; i < m.rows; ++i)
        for (int64_t j = 0; j < m.columns; ++j)
          view_.as<T>()[offset(n, i, j)] = static_cast<T>(static_cast<Compute<T>>(m.at(i, j)));
    });
  }
  // One integer, or a vector of them.
  std::vector<int64_t> ints(int64_t n) const {
    std::vector<int64_t> all;
    for (int64_t j = 0; j < columns(); ++j) all.push_back(load_int(view_, offset(n, 0, j)));
    return all;
  }
  void write_ints(int64_t n, const std::vector<int64_t>& all) const {
    dispatch<kIndex>(view_.dtype, [&]<typename T>() {
      for (int64_t j = 0; j < columns(); ++j)
        view_.as<T>()[offset(n, 0, j)] = static_cast<T>(all[j]);
    });
  }

 private:
  int64_t offset(int64_t n, int64_t i, int64_t j) const {
    const Shape index = index_of(batch_, n);
    const size_t own = view_.shape().size() - axes_, skip = batch_.size() - own;
    int64_t at = 0;
    for (size_t k = 0; k < own; ++k)
      if (view_.shape()[k] != 1) at += index[skip + k] * view_.strides()[k];
    if (axes_ > 0) at += j * view_.strides().back();
    if (axes_ > 1) at += i * view_.strides()[view_.strides().size() - 2];
    return at;
  }

  View view_;
  size_t axes_;
  Shape batch_;
};

// Calls fn.template operator()<A>() with what matrices of a dtype are computed in.
template <typename Fn>
void with_matrix_type(DType dtype, Fn&& fn) {
  if (contains(kComplex, dtype))
    fn.template operator()<WideComplex>();
  else
    fn.template operator()<double>();
}

// fn<A>(n) for each element of the batch `counted`, with matrices of x's dtype.
template <typename Fn>
void for_each_matrix(const Matrices& x, const Matrices& counted, Fn&& fn) {
  with_matrix_type(x.dtype(), [&]<typename A>() {
    for (int64_t n = 0; n < counted.count(); ++n) fn.template operator()<A>(n);
  });
}

// Says how the n-th matrix went: in output `i` if it is asked for, else by an error.
inline void report(const ReferenceArgs& args, size_t i, int64_t n, int64_t info, const char* what) {
  if (i < args.out.size())
    Matrices(args.out[i], 0).write_ints(n, {info});
  else
    require(info == 0, "[{}] a matrix {}", args.op.name, what);
}

}  // namespace anymps
