// SPDX-License-Identifier: Apache-2.0
// Sequences of different lengths, one behind another in memory, to and from a padded tensor. That
// is what nested tensors with the layout `jagged` need; the older layout keeps to a fixed list of
// devices, and so what would make such a tensor says that it cannot.
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/searchsorted.h>
#include <ATen/ops/where.h>
#include <torch/library.h>
#include "strict.h"

namespace anymps::aten {

namespace {

using at::Tensor;

const Tensor& only(at::TensorList offsets) {
  TORCH_CHECK_NOT_IMPLEMENTED(offsets.size() == 1,
                              "sequences of sequences are not supported on mps: ", offsets.size(),
                              " lists of offsets are given");
  return offsets[0];
}

// A condition of two axes for tensors with more.
Tensor with_rank(Tensor condition, int64_t rank) {
  while (condition.dim() < rank) condition = condition.unsqueeze(-1);
  return condition;
}

Tensor to_padded(const Tensor& values, at::TensorList all_offsets, at::IntArrayRef lengths,
                 double padding) {
  const Tensor offsets = only(all_offsets).to(at::kLong);
  const int64_t rows = offsets.numel() - 1, longest = lengths.at(0);
  std::vector<int64_t> shape = values.sizes().vec();
  shape[0] = longest;
  shape.insert(shape.begin(), rows);
  if (values.size(0) == 0 || rows * longest == 0) return at::full(shape, padding, values.options());
  const Tensor starts = offsets.narrow(0, 0, rows).unsqueeze(1);
  const Tensor ends = offsets.narrow(0, 1, rows).unsqueeze(1);
  const Tensor places = starts + at::arange(longest, offsets.options());
  const Tensor taken = values.index_select(0, places.clamp_max(values.size(0) - 1).flatten());
  return at::where(with_rank(places < ends, std::ssize(shape)), taken.view(shape), padding)
      .to(values.scalar_type());
}

Tensor from_padded(const Tensor& padded, at::TensorList all_offsets, std::optional<int64_t> count) {
  const Tensor offsets = only(all_offsets).to(at::kLong);
  const int64_t total = count ? *count : offsets[-1].item<int64_t>();
  const Tensor places = at::arange(total, offsets.options());
  const Tensor rows = at::searchsorted(offsets, places, false, true) - 1;
  const Tensor columns = places - offsets.index_select(0, rows);
  // Of what is cut off in the padded tensor nothing is known.
  const Tensor taken = padded.index({rows, columns.clamp_max(padded.size(1) - 1)});
  return at::where(with_rank(columns < padded.size(1), taken.dim()), taken, 0)
      .to(padded.scalar_type());
}

// Whether a mask can become a nested tensor of the older layout: not here.
bool left_aligned(const Tensor&, const Tensor&) { return false; }

}  // namespace

TORCH_LIBRARY_IMPL(aten, MPS, m) {
  if (strict()) return;  // a Mac has none of them
  m.impl("_jagged_to_padded_dense_forward", to_padded);
  m.impl("_padded_dense_to_jagged_forward", from_padded);
  m.impl("_nested_tensor_from_mask_left_aligned", left_aligned);
}

}  // namespace anymps::aten
