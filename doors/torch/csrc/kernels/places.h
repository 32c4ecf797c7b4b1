// SPDX-License-Identifier: Apache-2.0
// Indices as PyTorch has them: on either device, masks among them, negative ones not always
// allowed.
#pragma once

#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

namespace anymps::aten {

// A list of indices of `self`, each for an axis or undefined, on this device: a mask of n axes
// stands for n indices.
std::vector<at::Tensor> places_of(const at::Tensor& self, const c10::IValue& list);

// Fails with PyTorch's words if an index is below 0.
void check_from_zero(const at::Tensor& indices);

}  // namespace anymps::aten
