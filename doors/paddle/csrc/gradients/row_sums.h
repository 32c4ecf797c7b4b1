// SPDX-License-Identifier: Apache-2.0
// Sums of gradients of which one or both hold the rows of an embedding alone.
#pragma once

#include <memory>

#include <paddle/phi/api/include/tensor.h>

namespace anymps::paddle {

// Rows and rows: each row once, in ascending order.
std::shared_ptr<::paddle::Tensor> merged_rows(const ::paddle::Tensor& x, const ::paddle::Tensor& y);
// Into a full gradient.
void add_rows(const ::paddle::Tensor& rows, ::paddle::Tensor* to);
// Rows and a full gradient, as a new one.
void rows_plus(const ::paddle::Tensor& rows, const ::paddle::Tensor& full, ::paddle::Tensor* sum);

}  // namespace anymps::paddle
