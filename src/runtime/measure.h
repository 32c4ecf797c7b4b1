// SPDX-License-Identifier: Apache-2.0
// Asking an op for output shapes that depend on the elements of its inputs (Op::measure).
#pragma once

#include <memory>
#include <vector>

#include "memory/constant.h"
#include "runtime/device.h"

namespace anymps {

class MeasureInputs {
 public:
  explicit MeasureInputs(size_t count) : inputs_(count) {}
  void set(size_t i, const Constant& constant);
  void set(size_t i, Device& device, const Tensor& tensor, Queue& queue);  // copied if need be
  std::vector<Shape> measure(const Op& op, const Attrs& attrs, size_t outputs) const;

 private:
  void hold(size_t i, const TensorDesc& desc, std::shared_ptr<const void> elements);

  std::vector<MeasureInput> inputs_;
  std::vector<std::shared_ptr<const void>> held_;
};

}  // namespace anymps
