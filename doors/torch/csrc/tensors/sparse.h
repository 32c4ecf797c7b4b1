// SPDX-License-Identifier: Apache-2.0
// What sparse tensors are looked at with.
#pragma once

#include <ATen/core/List.h>
#include <ATen/core/Tensor.h>

namespace anymps::aten::sparse {

// One number for each place of a list of indices, in the order of the places.
at::Tensor places(const at::Tensor& indices, at::IntArrayRef sizes);

// A sparse tensor of the form of another, with elements of its own.
at::Tensor make(const at::Tensor& like, const at::Tensor& indices, const at::Tensor& values,
                bool coalesced);

// The places, to index a dense tensor with.
c10::List<std::optional<at::Tensor>> as_list(const at::Tensor& indices);

}  // namespace anymps::aten::sparse
