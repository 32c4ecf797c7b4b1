// SPDX-License-Identifier: Apache-2.0
// The weights of a graph for inference: which of them stay as they are from call to call, so that
// the graph may have them as constants.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>
#include "device/written.h"

namespace anymps::aten {

class Weights {
 public:
  explicit Weights(std::vector<size_t> inputs);  // which inputs of the graph
  bool empty() const { return seen_.empty(); }

  // Looks at the inputs of a call, before it. Whether those that are constants are still the same.
  bool constants_stay(const std::vector<at::Tensor>& inputs);
  // Which inputs are to be constants from this call on; none as long as they are seen to change.
  std::vector<size_t> choose_constants();

 private:
  // What a weight was when it was last looked at.
  struct Seen {
    size_t input;
    std::shared_ptr<Watched> storage;
    const void* data = nullptr;
    uint64_t version = 0, writes = 0;
    int64_t calls_unchanged = 0;
    bool constant = false;
  };
  static bool look(Seen& seen, const at::Tensor& tensor);

  std::vector<Seen> seen_;
  int64_t runs_ = 0;          // with the present constants
  int64_t wanted_calls_ = 0;  // so many calls without a change before a weight is a constant
};

}  // namespace anymps::aten
