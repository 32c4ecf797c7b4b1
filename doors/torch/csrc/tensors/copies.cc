// SPDX-License-Identifier: Apache-2.0
// Copies within the device, from the CPU and back, with any strides and types: all of it is memory
// that the engine reaches.
#include <ATen/Dispatch_v2.h>
#include <ATen/ExpandUtils.h>
#include <ATen/ops/_conj_physical.h>
#include <ATen/ops/neg.h>
#include <ATen/ops/view_as_real_native.h>
#include <torch/library.h>
#include "engine.h"
#include "lowering/few.h"
#include "lowering/kernel.h"
#include "tensors/transfers.h"
#include "types.h"

namespace anymps::aten {

namespace {

using at::Tensor;

// Of what lies in memory, whatever a view of it is marked as.
Tensor pairs(const Tensor& complex) {
  return at::native::view_as_real(complex.is_conj() ? complex.conj() : complex);
}

const lowering::Kernel& copy_kernel() {
  static constexpr lowering::Row kRow{"copy_", "src", "src"};
  static const auto& kernel = *new lowering::Kernel(kRow);
  return kernel;
}

// Complex halves are pairs of halves, which the engine knows.
void copy_elements(const Tensor& to, const Tensor& from) {
  const bool narrow = to.scalar_type() == at::kComplexHalf;
  if (narrow || from.scalar_type() == at::kComplexHalf) {
    if (to.is_complex() && from.is_complex()) return copy_elements(pairs(to), pairs(from));
    return copy_elements(to, from.to(at::kComplexFloat));
  }
  const amps_view source = view_of(from), target = view_to_write(to);
  const lowering::Argument argument = lowering::Argument::tensor(&source);
  const lowering::Wanted wanted{true, target.dtype, to.is_contiguous()};
  try {
    copy_kernel()
        .prepare(engine(), device(), {&argument, 1}, {&wanted, 1})
        .run({&argument, 1}, {&target, 1}, nullptr);
  } catch (const lowering::EngineError& error) {
    raise(error);
  }
}

Tensor& copy_(Tensor& self, const Tensor& given, bool /*non_blocking*/) {
  if (self.is_same(given)) return self;
  TORCH_CHECK_NOT_IMPLEMENTED(!given.is_meta(), "Cannot copy out of meta tensor; no data!");
  if (self.is_meta()) return self;
  TORCH_CHECK(given.layout() == at::kStrided && self.layout() == at::kStrided,
              "copies between mps and ", given.layout(), " tensors are not supported");
  Tensor from = given.sizes() == self.sizes() ? given : given.expand(self.sizes(), true);
  if (self.numel() == 0) return self;
  const Transfer transfer(from.device(), self.device(), self.nbytes());
  // Views that are marked as conjugates or negatives have elements that are not: what differs is
  // computed.
  if (from.is_conj() != self.is_conj())
    from = from.is_conj() ? at::_conj_physical(from.conj()) : at::_conj_physical(from);
  if (from.is_neg() != self.is_neg())
    from = from._neg_view().is_neg() ? from.neg()._neg_view() : from._neg_view().neg();
  copy_elements(self, from);
  return self;
}

Tensor copy_from(const Tensor& self, const Tensor& to, bool non_blocking) {
  Tensor target = to;
  return copy_(target, self, non_blocking);
}

Tensor copy_from_and_resize(const Tensor& self, const Tensor& to) {
  to.resize_(self.sizes());
  return copy_from(self, to, false);
}

// One element for the host.
at::Scalar local_scalar(const Tensor& self) {
  const Transfer transfer(self.device(), at::kCPU, self.element_size());
  return AT_DISPATCH_V2(self.scalar_type(), "_local_scalar_dense_mps",
                        AT_WRAP([&] { return at::Scalar(*self.const_data_ptr<scalar_t>()); }),
                        AT_EXPAND(AT_ALL_TYPES_AND_COMPLEX), at::kComplexHalf, at::kHalf,
                        at::kBFloat16, at::kBool, AT_EXPAND(AT_BAREBONES_UNSIGNED_TYPES),
                        AT_EXPAND(AT_FLOAT8_TYPES));
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, MPS, m) {
  m.impl("copy_", copy_);
  m.impl("_copy_from", copy_from);
  m.impl("_copy_from_and_resize", copy_from_and_resize);
  m.impl("_local_scalar_dense", local_scalar);
}

}  // namespace anymps::aten
