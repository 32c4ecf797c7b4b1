// SPDX-License-Identifier: Apache-2.0
// A call whose tensors have the same descriptions each time: looked up once, and run with nothing
// but their addresses.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "runtime/eager/eager.h"

namespace anymps {

class FixedCall {
 public:
  // Null for a call that takes more than to run a kernel (Eager::fix).
  static std::unique_ptr<const FixedCall> make(std::shared_ptr<Device> device,
                                               std::shared_ptr<const BoundOp> op,
                                               std::span<const TensorView> inputs,
                                               std::span<const TensorView> outputs);
  FixedCall(const FixedCall&) = delete;
  FixedCall& operator=(const FixedCall&) = delete;

  bool takes_inputs() const { return !inputs_.empty(); }
  // As many addresses as there were views; null for an input that is left out.
  void run(void* const* inputs, void* const* outputs) const;

 private:
  FixedCall() = default;
  bool apart(void* const* inputs, void* const* outputs) const;
  void run_views(void* const* inputs, void* const* outputs) const;

  std::shared_ptr<Device> device_;
  std::shared_ptr<const BoundOp> op_;
  std::shared_ptr<const EagerEntry> entry_;
  std::vector<int64_t> numbers_;  // dims and strides of the views
  std::vector<TensorView> inputs_, outputs_;
  std::vector<bool> in_place_;  // by input and output: may be the same memory
};

}  // namespace anymps
