// SPDX-License-Identifier: Apache-2.0
// Where gradients of a value meet.
#pragma once

#include <paddle/phi/api/include/tensor.h>

namespace anymps::paddle {

// As `y += x`, but in new memory: a view of the old may be another gradient. No graph is recorded.
::paddle::Tensor gradient_sum(const ::paddle::Tensor& x, const ::paddle::Tensor& y);

}  // namespace anymps::paddle
