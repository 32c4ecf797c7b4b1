// SPDX-License-Identifier: Apache-2.0
// A strided tensor as a batch of matrices, vectors or numbers in double.
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

  int64_t count() const { return element_count(batch_); }
  int64_t columns() const { return axes_ == 0 ? 1 : view_.shape().back(); }
  int64_t rows() const { return axes_ < 2 ? 1 : view_.shape()[view_.shape().size() - 2]; }

  Matrix read(int64_t n) const {
    Matrix m(rows(), columns());
    for (int64_t i = 0; i < m.rows; ++i)
      for (int64_t j = 0; j < m.columns; ++j) m.at(i, j) = load_double(view_, offset(n, i, j));
    return m;
  }
  void write(int64_t n, const Matrix& m) const {
    dispatch<kFloat>(view_.dtype, [&]<typename T>() {
      for (int64_t i = 0; i < m.rows; ++i)
        for (int64_t j = 0; j < m.columns; ++j)
          view_.as<T>()[offset(n, i, j)] = static_cast<T>(static_cast<Compute<T>>(m.at(i, j)));
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

}  // namespace anymps
