// SPDX-License-Identifier: Apache-2.0
// What PyTorch asks of the elements of an argument, or of a number, before it computes with them.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Scalar.h>

namespace anymps::aten {

// Fails unless all elements are probabilities; a NaN is none. `name`: of the op.
void check_probabilities(const at::Tensor& tensor, const char* name);

// Fails if an element is below 0, or a NaN.
void check_not_negative(const at::Tensor& tensor, const char* name);

// Fails with PyTorch's words if the type does not hold the number: 300 in a byte, an imaginary part
// in a float. The one of a tensor is its only element.
void check_held(at::ScalarType type, const at::Scalar& number);
void check_held(at::ScalarType type, const at::Tensor& number, const char* name);

}  // namespace anymps::aten
