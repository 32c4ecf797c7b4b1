// SPDX-License-Identifier: Apache-2.0
// Kernels of linear algebra on the CPU: each matrix of a batch is read into double or complex
// double, column-major as LAPACK wants it, and the batch is shared among the threads.
#pragma once

#include <utility>

#include "drivers/cpu/threads.h"
#include "drivers/kernel.h"
#include "semantics/factors.h"

namespace anymps::cpu {

template <typename A>
using ColumnMatrix = MatrixOf<A, true>;

// A tensor as a batch of matrices, vectors (which are rows) or numbers.
class MatrixBatch {
 public:
  // `axes` of the last axes belong to one element; the batch is broadcast to `like`.
  MatrixBatch(const TensorDesc& desc, size_t axes, const Shape& like) : dtype_(desc.dtype) {
    const size_t rank = desc.shape.size(), own = rank - axes, skip = like.size() - own;
    batch_ = like;
    steps_ = Strides(like.size(), 0);
    for (size_t i = 0; i < own; ++i)
      if (desc.shape[i] != 1) steps_[skip + i] = desc.strides[i];
    if (axes > 0) columns_ = desc.shape[rank - 1], column_step_ = desc.strides[rank - 1];
    if (axes > 1) rows_ = desc.shape[rank - 2], row_step_ = desc.strides[rank - 2];
  }
  int64_t rows() const { return rows_; }
  int64_t columns() const { return columns_; }

  template <typename M>
  void read(const void* data, int64_t n, M& m) const {
    using A = typename decltype(m.data)::value_type;
    m.resize(rows_, columns_);
    dispatch<std::is_same_v<A, double> ? kFloat : kComplex>(dtype_, [&]<typename T>() {
      const T* from = static_cast<const T*>(data) + offset(n);
      for (int64_t i = 0; i < rows_; ++i)
        for (int64_t j = 0; j < columns_; ++j)
          m.at(i, j) =
              static_cast<A>(static_cast<Compute<T>>(from[i * row_step_ + j * column_step_]));
    });
  }
  template <typename M>
  void write(void* data, int64_t n, const M& m) const {
    using A = typename decltype(m.data)::value_type;
    dispatch<std::is_same_v<A, double> ? kFloat : kComplex>(dtype_, [&]<typename T>() {
      T* to = static_cast<T*>(data) + offset(n);
      for (int64_t i = 0; i < rows_; ++i)
        for (int64_t j = 0; j < columns_; ++j)
          to[i * row_step_ + j * column_step_] =
              static_cast<T>(static_cast<Compute<T>>(m.at(i, j)));
    });
  }
  std::vector<int> read_ints(const void* data, int64_t n) const {
    std::vector<int> all;
    dispatch<kIndex>(dtype_, [&]<typename T>() {
      for (int64_t j = 0; j < columns_; ++j)
        all.push_back(
            static_cast<int>((static_cast<const T*>(data) + offset(n))[j * column_step_]));
    });
    return all;
  }
  void write_ints(void* data, int64_t n, const int* values) const {
    dispatch<kIndex>(dtype_, [&]<typename T>() {
      T* to = static_cast<T*>(data) + offset(n);
      for (int64_t j = 0; j < columns_; ++j) to[j * column_step_] = static_cast<T>(values[j]);
    });
  }

 private:
  int64_t offset(int64_t n) const {
    int64_t at = 0;
    for (size_t i = batch_.size(); i-- > 0; n /= batch_[i]) at += n % batch_[i] * steps_[i];
    return at;
  }

  DType dtype_;
  int64_t rows_ = 1, columns_ = 1, row_step_ = 0, column_step_ = 0;
  Shape batch_;
  Strides steps_;
};

// One element of the batch as a kernel sees it.
template <typename A>
struct MatrixItem {
  using M = ColumnMatrix<A>;
  const Op& op;
  const Attrs& attrs;
  const std::vector<MatrixBatch>&in, &out;
  void *const *inputs, *const *outputs;
  int64_t n = 0;
  M &a, &b;  // memory that a thread keeps from one element to the next

  M& read(size_t i, M& m) const {
    in[i].read(inputs[i], n, m);
    return m;
  }
  std::vector<int> ints(size_t i) const { return in[i].read_ints(inputs[i], n); }
  bool wants(size_t i) const { return i < out.size(); }
  template <typename Matrix>
  void write(size_t i, const Matrix& m) const {
    if (wants(i)) out[i].write(outputs[i], n, m);
  }
  void write_ints(size_t i, const int* values) const {
    if (wants(i)) out[i].write_ints(outputs[i], n, values);
  }
  // Says how this matrix went: in output i if it is asked for, else by an error.
  void report(size_t i, int info, const char* what) const {
    write_ints(i, &info);
    require(wants(i) || info == 0, "[{}] a matrix {}", op.name, what);
  }
  int extent(int64_t value) const {
    require(value <= INT32_MAX / 64, "[{}] an extent of {} is too large", op.name, value);
    return static_cast<int>(value);
  }
};

// A kernel that runs fn(MatrixItem) for each element of the batch, with as many of the last axes of
// inputs and outputs as `in_axes` and `out_axes` say.
template <typename A, typename Fn>
KernelPtr make_typed_matrix_kernel(const KernelRequest& request, const Shape& batch,
                                   const std::vector<size_t>& in_axes,
                                   const std::vector<size_t>& out_axes, Fn fn) {
  std::vector<MatrixBatch> in, out;
  for (size_t i = 0; i < request.inputs.size(); ++i)
    in.emplace_back(request.in(i), in_axes[i], batch);
  for (size_t i = 0; i < request.outputs.size(); ++i)
    out.emplace_back(request.out(i), out_axes[i], batch);
  const auto rows = static_cast<double>(in[0].rows() + 1),
             columns = static_cast<double>(in[0].columns() + 1);
  const double cost = rows * columns * std::min(rows, columns) + 200;
  return make_kernel([=, op = request.op, attrs = request.attrs, in = std::move(in),
                      out = std::move(out), count = element_count(batch)](const KernelArgs& args) {
    parallel_for(0, count, cost, [&](int64_t begin, int64_t end) {
      ColumnMatrix<A> a, b;
      for (int64_t n = begin; n < end; ++n)
        fn(MatrixItem<A>{*op, attrs, in, out, args.inputs, args.outputs, n, a, b});
    });
  });
}

// The shape of a tensor without its last axes.
inline Shape batch_of(const TensorDesc& desc, size_t axes) {
  return Shape(desc.shape.begin(), desc.shape.end() - static_cast<std::ptrdiff_t>(axes));
}

// The same for both types of elements.
template <typename Fn>
KernelPtr make_matrix_kernel(const KernelRequest& request, const Shape& batch,
                             const std::vector<size_t>& in_axes,
                             const std::vector<size_t>& out_axes, Fn fn) {
  if (contains(kComplex, request.in(0).dtype))
    return make_typed_matrix_kernel<std::complex<double>>(request, batch, in_axes, out_axes, fn);
  return make_typed_matrix_kernel<double>(request, batch, in_axes, out_axes, fn);
}

}  // namespace anymps::cpu
