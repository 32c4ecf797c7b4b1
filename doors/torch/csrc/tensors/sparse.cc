// SPDX-License-Identifier: Apache-2.0
// Sparse tensors. What only looks after the dense tensors that a sparse one is made of, or hands
// all elements to dense ops, is PyTorch's own code: it is registered for the CPU, and is called
// here with tensors of this device. What PyTorch has kernels of the CPU for is told in dense ops.
#include <algorithm>
#include <string>
#include <string_view>

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/_sparse_coo_tensor_with_dims_and_tensors.h>
#include <ATen/ops/_to_sparse_native.h>
#include <ATen/ops/_unique2.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/copy_sparse_to_sparse.h>
#include <ATen/ops/repeat_interleave.h>
#include <ATen/ops/result_type.h>
#include <ATen/ops/searchsorted.h>
#include <ATen/ops/zeros.h>
#include <torch/library.h>
#include "tensors/sparse.h"

namespace anymps::aten {

namespace sparse {

using at::Tensor;

Tensor places(const Tensor& indices, at::IntArrayRef sizes) {
  Tensor place = at::zeros({indices.size(1)}, indices.options());
  for (int64_t axis = 0; axis < indices.size(0); ++axis)
    place = place * sizes[axis] + indices.select(0, axis);
  return place;
}

Tensor make(const Tensor& like, const Tensor& indices, const Tensor& values, bool coalesced) {
  return at::_sparse_coo_tensor_with_dims_and_tensors(like.sparse_dim(), like.dense_dim(),
                                                      like.sizes(), indices, values,
                                                      like.options().dtype(values.dtype()))
      ._coalesced_(coalesced);
}

c10::List<std::optional<Tensor>> as_list(const Tensor& indices) {
  c10::List<std::optional<Tensor>> list;
  for (const Tensor& axis : indices.unbind(0)) list.push_back(axis);
  return list;
}

}  // namespace sparse

namespace {

using at::Tensor;
using sparse::as_list;
using sparse::make;
using sparse::places;

constexpr std::string_view kShared[] = {
#include "tensors/sparse_kernels.inc"
};

Tensor& write(Tensor& out, const Tensor& made) {
  out.sparse_resize_and_clear_(made.sizes(), made.sparse_dim(), made.dense_dim());
  return at::copy_sparse_to_sparse_(out, made);
}

// Each distinct place once, in order, with the sum of its values.
Tensor coalesce(const Tensor& self) {
  if (self._nnz() < 2) return self.clone()._coalesced_(true);
  const Tensor indices = self._indices(), values = self._values();
  const auto [distinct, inverse, counts] = at::_unique2(places(indices, self.sizes()), true, true);
  std::vector<int64_t> shape = values.sizes().vec();
  shape[0] = distinct.numel();
  const Tensor sums = at::zeros(shape, values.options()).index_add_(0, inverse, values);
  const Tensor kept = at::zeros({self.sparse_dim(), distinct.numel()}, indices.options())
                          .index_copy_(1, inverse, indices);
  return make(self, kept, sums, true);
}

void add_to_dense(Tensor& dense, const Tensor& sparse, const at::Scalar& alpha) {
  const Tensor values = (sparse._values() * alpha).to(dense.scalar_type());
  if (sparse.sparse_dim() == 0)
    dense.add_(values.sum(0));
  else
    dense.index_put_(as_list(sparse._indices()), values, true);
}

Tensor& add_out(const Tensor& self, const Tensor& other, const at::Scalar& alpha, Tensor& out) {
  TORCH_CHECK(other.is_sparse(),
              "add(sparse, dense) is not supported. Use add(dense, sparse) instead.");
  TORCH_CHECK(self.sizes() == other.sizes(), "add: expected sizes of 'self' and 'other' to match, ",
              self.sizes(), " != ", other.sizes());
  const at::ScalarType type = at::result_type(self, other);
  if (!self.is_sparse()) {
    at::native::resize_output(out, self.sizes());
    if (!out.is_same(self)) out.copy_(self);
    add_to_dense(out, other, alpha);
    return out;
  }
  TORCH_CHECK(self.sparse_dim() == other.sparse_dim(),
              "add: expected 'self' and 'other' to have the same number of sparse dimensions");
  const Tensor sum =
      make(self, at::cat({self._indices(), other._indices()}, 1),
           at::cat({self._values().to(type), (other._values() * alpha).to(type)}), false);
  return write(out, self.is_coalesced() && other.is_coalesced() ? sum.coalesce() : sum);
}

Tensor times_dense(const Tensor& sparse, const Tensor& dense) {
  if (dense.dim() == 0)
    return make(sparse, sparse._indices(), sparse._values() * dense, sparse.is_coalesced());
  const Tensor factors = dense.expand(sparse.sizes());
  return make(sparse, sparse._indices(),
              sparse._values() *
                  (sparse.sparse_dim() == 0 ? factors : factors.index(as_list(sparse._indices()))),
              sparse.is_coalesced());
}

Tensor& mul_out(const Tensor& self, const Tensor& other, Tensor& out) {
  if (!self.is_sparse()) return write(out, times_dense(other, self));
  if (!other.is_sparse()) return write(out, times_dense(self, other));
  TORCH_CHECK(self.sizes() == other.sizes(),
              "mul: expected 'self' and 'other' to be of the same "
              "size, ",
              self.sizes(), " != ", other.sizes());
  TORCH_CHECK(self.sparse_dim() == other.sparse_dim(),
              "mul: expected 'self' and 'other' to have the same number of sparse dimensions");
  const Tensor a = self.coalesce(), b = other.coalesce();
  if (a._nnz() == 0 || b._nnz() == 0)
    return write(out, make(self, a._indices().narrow(1, 0, 0),
                           (a._values().narrow(0, 0, 0) * b._values().narrow(0, 0, 0)), true));
  const Tensor wanted = places(a._indices(), a.sizes()), there = places(b._indices(), b.sizes());
  const Tensor at = at::searchsorted(there, wanted).clamp_max(there.numel() - 1);
  const Tensor both = there.index_select(0, at).eq(wanted).nonzero().squeeze(1);
  return write(out, make(self, a._indices().index_select(1, both),
                         a._values().index_select(0, both) *
                             b._values().index_select(0, at.index_select(0, both)),
                         true));
}

void check_product(const Tensor& a, const Tensor& b) {
  TORCH_CHECK(a.dim() == 2 && b.dim() == 2 && (!a.is_sparse() || a.dense_dim() == 0) &&
                  (!b.is_sparse() || b.dense_dim() == 0),
              "mm: expected two matrices");
  TORCH_CHECK(a.size(1) == b.size(0), "mm: expected mat2 to have ", a.size(1), " rows, but it has ",
              b.size(0));
}

// The rows of `dense` that a row of `sparse` has elements for, weighted with these.
Tensor product(const Tensor& sparse, const Tensor& dense) {
  check_product(sparse, dense);
  const Tensor indices = sparse._indices();
  const Tensor rows = dense.index_select(0, indices.select(0, 1));
  return at::zeros({sparse.size(0), dense.size(1)}, dense.options())
      .index_add_(0, indices.select(0, 0), rows * sparse._values().unsqueeze(1));
}

// Each element of `a` with all of its row of `b`.
Tensor sparse_product(const Tensor& self, const Tensor& other) {
  check_product(self, other);
  const Tensor a = self.coalesce(), b = other.coalesce();
  const Tensor of_b = b._indices().select(0, 0), inner = a._indices().select(0, 1);
  const Tensor starts =
      at::searchsorted(of_b.contiguous(), at::arange(b.size(0) + 1, of_b.options()));
  const Tensor first = starts.index_select(0, inner);
  const Tensor counts = starts.index_select(0, inner + 1) - first;
  const Tensor from_a = at::repeat_interleave(counts);
  const Tensor before = (counts.cumsum(0) - counts).index_select(0, from_a);
  const Tensor from_b =
      first.index_select(0, from_a) + at::arange(from_a.numel(), of_b.options()) - before;
  const Tensor indices = at::cat({a._indices().select(0, 0).index_select(0, from_a).unsqueeze(0),
                                  b._indices().select(0, 1).index_select(0, from_b).unsqueeze(0)});
  const Tensor values = a._values().index_select(0, from_a) * b._values().index_select(0, from_b);
  return at::_sparse_coo_tensor_with_dims_and_tensors(2, 0, {a.size(0), b.size(1)}, indices, values,
                                                      a.options().dtype(values.dtype()))
      .coalesce();
}

Tensor sparse_addmm(const Tensor& self, const Tensor& a, const Tensor& b, const at::Scalar& beta,
                    const at::Scalar& alpha) {
  TORCH_CHECK(!b.is_sparse(), "addmm: expected a dense matrix behind the sparse one");
  const Tensor made = product(a, b) * alpha;
  return beta.equal(0) ? made : self * beta + made;
}

Tensor& sparse_addmm_out(const Tensor& self, const Tensor& a, const Tensor& b,
                         const at::Scalar& beta, const at::Scalar& alpha, Tensor& out) {
  const Tensor made = sparse_addmm(self, a, b, beta, alpha);
  at::native::resize_output(out, made.sizes());
  return out.copy_(made);
}

// The elements of `self` where `mask` has some; what is not there is 0.
Tensor masked(const Tensor& self, const Tensor& mask) {
  TORCH_CHECK(self.sizes() == mask.sizes(),
              "sparse_mask(): operands have incompatible sizes; self "
              "has size ",
              self.sizes(), " but mask has size ", mask.sizes());
  const Tensor places_of = mask.coalesce()._indices();
  const Tensor dense = self.is_sparse() ? self.to_dense() : self;
  return make(mask, places_of, dense.index(as_list(places_of)), true);
}

void call_kernel_of_cpu(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::SparseCPU), stack);
}

// "abs" is also abs_ and abs.out; "add.Tensor" is itself alone.
bool is_shared(const std::string& base, const std::string& full) {
  return std::ranges::any_of(kShared, [&](std::string_view name) {
    return name == full || name == base ||
           (base.ends_with('_') && base.substr(0, base.size() - 1) == name);
  });
}

int share_kernels() {
  auto& library = *new torch::Library(torch::Library::IMPL, "aten", c10::DispatchKey::SparseMPS,
                                      __FILE__, __LINE__);
  for (const c10::OperatorName& name : c10::Dispatcher::singleton().getAllOpNames()) {
    if (!name.name.starts_with("aten::")) continue;
    const std::string base = name.name.substr(6);
    const std::string full = name.overload_name.empty() ? base : base + "." + name.overload_name;
    if (!is_shared(base, full)) continue;
    const auto op = c10::Dispatcher::singleton().findOp(name);
    if (op && op->hasKernelForDispatchKey(c10::DispatchKey::SparseCPU))
      library.impl(full.c_str(), torch::CppFunction::makeFromBoxedFunction<&call_kernel_of_cpu>());
  }
  return 0;
}

const int shared = share_kernels();

}  // namespace

TORCH_LIBRARY_IMPL(aten, SparseMPS, m) {
  m.impl("_coalesce", coalesce);
  m.impl("add.out", add_out);
  m.impl("mul.out", mul_out);
  m.impl("addmm", sparse_addmm);
  m.impl("addmm.out", sparse_addmm_out);
  m.impl("_sparse_sparse_matmul", sparse_product);
  m.impl("sparse_mask", masked);
}

TORCH_LIBRARY_IMPL(aten, MPS, m) {
  m.impl("_to_sparse", [](const Tensor& self, std::optional<at::Layout> layout,
                          at::OptionalIntArrayRef block, std::optional<int64_t> dense_dim) {
    return at::native::dense_to_sparse(self, layout, block, dense_dim);
  });
  m.impl("_to_sparse.sparse_dim", [](const Tensor& self, int64_t sparse_dim) {
    return at::native::dense_to_sparse(self, sparse_dim);
  });
  m.impl("sparse_mask", masked);
}

}  // namespace anymps::aten
