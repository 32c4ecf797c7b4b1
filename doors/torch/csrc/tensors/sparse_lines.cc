// SPDX-License-Identifier: Apache-2.0
// What is computed along an axis of a sparse tensor, told in dense ops: softmax with its gradient,
// elements picked, products of batches, the gradient of a sum.
#include <algorithm>
#include <limits>

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/_log_softmax_backward_data.h>
#include <ATen/ops/_softmax_backward_data.h>
#include <ATen/ops/_sparse_coo_tensor_with_dims_and_tensors.h>
#include <ATen/ops/_unique2.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/repeat_interleave.h>
#include <ATen/ops/searchsorted.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <torch/library.h>
#include "tensors/sparse.h"

namespace anymps::aten {

namespace {

using at::Tensor;

// The elements that lie in one line along an axis that is sparse. What is not there takes no part.
class Lines {
 public:
  Lines(const Tensor& x, int64_t dim) : values_(x._values()) {
    const Tensor indices =
        x._indices().index_fill(0, at::arange(dim, dim + 1, x._indices().options()), at::Scalar(0));
    const auto [distinct, inverse, counts] =
        at::_unique2(sparse::places(indices, x.sizes()), true, true);
    line_ = inverse;
    shape_ = values_.sizes().vec();
    shape_[0] = distinct.numel();
  }
  Tensor greatest(const Tensor& values) const {
    const double least = -std::numeric_limits<double>::infinity();
    return at::full(shape_, least, values.options())
        .index_reduce(0, line_, values, "amax")
        .index_select(0, line_);
  }
  Tensor sum(const Tensor& values) const {
    return at::zeros(shape_, values.options()).index_add(0, line_, values).index_select(0, line_);
  }

 private:
  Tensor values_, line_;
  std::vector<int64_t> shape_;
};

int64_t counted(int64_t dim, const Tensor& x) {
  TORCH_CHECK_INDEX(dim >= -x.dim() && dim < x.dim(),
                    "Dimension out of range (expected to be in range of [", -x.dim(), ", ",
                    x.dim() - 1, "], but got ", dim, ")");
  return dim < 0 ? dim + x.dim() : dim;
}

template <bool kLog>
Tensor softmax(const Tensor& self, int64_t axis, bool half_to_float) {
  TORCH_CHECK(!half_to_float, "softmax with half to float conversion is not supported on mps");
  const int64_t dim = counted(axis, self);
  const Tensor x = self.coalesce(), values = x._values();
  const auto result = [&](const Tensor& made) { return sparse::make(x, x._indices(), made, true); };
  if (values.numel() == 0) return result(values.clone());
  if (const int64_t inner = dim - x.sparse_dim() + 1; inner > 0)
    return result(kLog ? at::log_softmax(values, inner) : at::softmax(values, inner));
  const Lines lines(x, dim);
  const Tensor below = values - lines.greatest(values), parts = below.exp();
  return result(kLog ? below - lines.sum(parts).log() : parts / lines.sum(parts));
}

// The values of `grad` where `output` has some.
Tensor values_at(const Tensor& grad, const Tensor& output) {
  if (grad._nnz() == 0) return at::zeros_like(output._values());
  const Tensor wanted = sparse::places(output._indices(), output.sizes());
  const Tensor there = sparse::places(grad._indices(), grad.sizes());
  const Tensor at = at::searchsorted(there, wanted).clamp_max(there.numel() - 1);
  std::vector<int64_t> shape(output._values().dim(), 1);
  shape[0] = wanted.numel();
  const Tensor found = there.index_select(0, at).eq(wanted).reshape(shape);
  return at::where(found, grad._values().index_select(0, at), 0);
}

template <bool kLog>
Tensor softmax_gradient(const Tensor& gradient, const Tensor& result, int64_t axis,
                        const Tensor& self) {
  TORCH_CHECK(gradient.sizes() == result.sizes(),
              "the gradient of a softmax is to have the extents of its result");
  const int64_t dim = counted(axis, self);
  const Tensor output = result.coalesce(), y = output._values();
  const Tensor grad = values_at(gradient.coalesce(), output);
  const auto made = [&](const Tensor& x) {
    return sparse::make(output, output._indices(), x, true);
  };
  if (y.numel() == 0) return made(y.clone());
  if (const int64_t inner = dim - output.sparse_dim() + 1; inner > 0)
    return made(kLog ? at::_log_softmax_backward_data(grad, y, inner, y.scalar_type())
                     : at::_softmax_backward_data(grad, y, inner, y.scalar_type()));
  const Lines lines(output, dim);
  return made(kLog ? grad - y.exp() * lines.sum(grad) : y * (grad - lines.sum(y * grad)));
}

Tensor index_select(const Tensor& self, int64_t axis, const Tensor& index) {
  TORCH_CHECK_INDEX(self.dim() > 0, "index_select(): the tensor has no dimension to select from");
  TORCH_CHECK_INDEX(
      index.dim() < 2 && (index.scalar_type() == at::kLong || index.scalar_type() == at::kInt),
      "index_select(): the index is to be a vector of int32 or int64");
  const int64_t dim = counted(axis, self), extent = self.size(dim);
  const Tensor given = index.to(at::kLong).reshape({-1});
  TORCH_CHECK_INDEX(
      given.numel() == 0 || given.ge(-extent).logical_and(given.lt(extent)).all().item<bool>(),
      "index_select(): the index has a place that is out of range for a tensor of size ", extent,
      " at dimension ", dim);
  const Tensor wanted = given.remainder(std::max<int64_t>(extent, 1));
  std::vector<int64_t> sizes = self.sizes().vec();
  sizes[dim] = wanted.numel();
  const auto made = [&](const Tensor& indices, const Tensor& values, bool coalesced) {
    return at::_sparse_coo_tensor_with_dims_and_tensors(self.sparse_dim(), self.dense_dim(), sizes,
                                                        indices, values, self.options())
        ._coalesced_(coalesced);
  };
  if (dim >= self.sparse_dim())
    return made(self._indices(), self._values().index_select(dim - self.sparse_dim() + 1, wanted),
                self.is_coalesced());
  // Each element as often as its place is wanted.
  const auto [sorted, order] = wanted.sort();
  const Tensor own = self._indices().select(0, dim).contiguous();
  const Tensor first = at::searchsorted(sorted, own);
  const Tensor counts = at::searchsorted(sorted, own, false, true) - first;
  const Tensor from = at::repeat_interleave(counts);
  const Tensor before = (counts.cumsum(0) - counts).index_select(0, from);
  const Tensor at = first.index_select(0, from) + at::arange(from.numel(), from.options()) - before;
  Tensor indices = self._indices().index_select(1, from);
  indices.select(0, dim).copy_(order.index_select(0, at));
  return made(indices, self._values().index_select(0, from), false);
}

// The matrices of a batch, as one that has them along its diagonal.
Tensor batch_product(const Tensor& self, const Tensor& other) {
  TORCH_CHECK(self.is_sparse() && !other.is_sparse(),
              "bmm_sparse: Tensor 'mat1' is to be sparse, and 'mat2' dense");
  TORCH_CHECK(self.dense_dim() == 0, "bmm_sparse: Tensor 'mat1' is to have no dense dimension");
  TORCH_CHECK(self.dim() == 3 && other.dim() == 3, "bmm_sparse: expected two batches of matrices");
  TORCH_CHECK(self.size(0) == other.size(0) && self.size(2) == other.size(1),
              "bmm_sparse: the extents ", self.sizes(), " and ", other.sizes(), " do not fit");
  const int64_t batch = self.size(0), rows = self.size(1), inner = self.size(2);
  const Tensor of = self._indices().select(0, 0);
  const Tensor indices = at::stack(
      {of * rows + self._indices().select(0, 1), of * inner + self._indices().select(0, 2)});
  const Tensor all = at::_sparse_coo_tensor_with_dims_and_tensors(
      2, 0, {batch * rows, batch * inner}, indices, self._values(), self.options());
  return at::mm(all, other.reshape({batch * inner, other.size(2)}))
      .reshape({batch, rows, other.size(2)});
}

Tensor& batch_product_out(const Tensor& self, const Tensor& other, Tensor& out) {
  const Tensor made = batch_product(self, other);
  at::native::resize_output(out, made.sizes());
  return out.copy_(made);
}

// Each element has the gradient of the sum that it went into.
Tensor sum_gradient(const Tensor& grad, const Tensor& self, at::IntArrayRef dims) {
  std::vector<int64_t> shape = self.sizes().vec();
  for (const int64_t dim : dims) shape[counted(dim, self)] = 1;
  const Tensor dense = (grad.is_sparse() ? grad.to_dense() : grad).reshape(shape);
  const Tensor x = self.coalesce();
  const Tensor values = x.sparse_dim() == 0
                            ? dense.expand(x.sizes()).unsqueeze(0).expand_as(x._values())
                            : dense.expand(x.sizes()).index(sparse::as_list(x._indices()));
  return sparse::make(x, x._indices(), values, true);
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, SparseMPS, m) {
  m.impl("_sparse_softmax", softmax<false>);
  m.impl("_sparse_log_softmax", softmax<true>);
  m.impl("_sparse_softmax_backward_data", softmax_gradient<false>);
  m.impl("_sparse_log_softmax_backward_data", softmax_gradient<true>);
  m.impl("_sparse_sum_backward", sum_gradient);
  m.impl("index_select", index_select);
  m.impl("bmm", batch_product);
  m.impl("bmm.out", batch_product_out);
}

}  // namespace anymps::aten
