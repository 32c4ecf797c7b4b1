// SPDX-License-Identifier: Apache-2.0
// The tensors of a matmul as every kernel wants them: matrices with batch axes, transposes and
// broadcasts as strides. Batch axes are merged as far as the strides allow; a product with one
// matrix of weights becomes two-dimensional.
#pragma once

#include <optional>

#include "drivers/kernel.h"

namespace anymps::cpu {

struct ProductTensors {
  static constexpr size_t kA = 0, kB = 1, kY = 2;

  // a, b, y, then the summands (bias and residual), broadcast to y. All have the batch axes of y,
  // with stride 0 where they are broadcast, and then two matrix axes. Rows of a summand that are
  // all the same may have the extent 1.
  std::vector<TensorDesc> tensors;
  std::vector<size_t> summands;  // their input numbers

  size_t batch_rank() const { return tensors[kY].shape.size() - 2; }
};

std::optional<ProductTensors> product_tensors(const KernelRequest& request, std::string& why);

}  // namespace anymps::cpu
