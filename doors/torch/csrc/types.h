// SPDX-License-Identifier: Apache-2.0
// Types of elements and tensors: ATen's and the engine's.
#pragma once

#include <optional>

#include <ATen/core/Tensor.h>
#include "anymps/anymps.h"

namespace anymps::aten {

std::optional<amps_dtype> to_engine(at::ScalarType type);  // nothing: the engine has no such type
at::ScalarType to_torch(amps_dtype type);

// The tensor's own memory, extents and strides: valid as long as the tensor is. Fails for a type
// that the engine has not.
amps_view view_of(const at::Tensor& tensor);
amps_view view_to_write(const at::Tensor& tensor);

}  // namespace anymps::aten
