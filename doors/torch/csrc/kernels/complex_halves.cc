// SPDX-License-Identifier: Apache-2.0
// Complex halves, which the engine has not: calls compute with them as complex numbers of f32, and
// results are rounded to them.
#include <ATen/native/Resize.h>
#include <ATen/ops/empty.h>
#include "kernels/call.h"
#include "types.h"

namespace anymps::aten {

using at::Tensor;

void Call::add_type(at::ScalarType type) {
  const bool narrow = type == at::kComplexHalf;
  narrow_ = narrow_ || narrow;
  const auto found = to_engine(narrow ? at::kComplexFloat : type);
  TORCH_CHECK_NOT_IMPLEMENTED(found, "tensors of ", type, " are not supported on mps");
  add_kind(lowering::Argument::Kind::kDType).i = *found;
}

Tensor Call::wide(const Tensor& tensor) {
  narrow_ = true;
  return tensor.to(at::kComplexFloat).resolve_conj().resolve_neg();
}

Tensor Call::to_write(const Tensor& given) {
  if (!given.defined() || given.scalar_type() != at::kComplexHalf || !given.device().is_mps())
    return given;
  narrow_ = true;
  narrow_outputs_.emplace_back(outputs_.size(), given);
  return at::empty(given.sizes(), given.options().dtype(at::kComplexFloat));
}

void Call::give_back(const lowering::Prepared& prepared) {
  if (!narrow_) return;
  for (const auto& [i, given] : narrow_outputs_) {
    if (prepared.places()[i] < 0) continue;
    at::native::resize_output(given, outputs_[i].sizes());
    given.copy_(outputs_[i]);
  }
  for (size_t i = 0; i < signature_.made; ++i) {
    Tensor& made = outputs_[i];
    if (!made.defined()) continue;
    if (made.scalar_type() == at::kComplexFloat)
      made = made.to(at::kComplexHalf);
    else if (made.scalar_type() == at::kFloat)
      made = made.to(at::kHalf);
  }
}

}  // namespace anymps::aten
