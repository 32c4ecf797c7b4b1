// SPDX-License-Identifier: Apache-2.0
// From a kernel's row and arguments to what runs: the graph is built, and is called as one op if it
// is one, else compiled.
#pragma once

#include "lowering/builder.h"
#include "lowering/kernel.h"

namespace anymps::lowering {

class Preparation {
 public:
  Preparation(const Kernel& kernel, const amps_api& api, amps_device* device,
              std::span<const Argument> arguments);
  std::unique_ptr<Prepared> make(std::span<const Wanted> wanted);

 private:
  // Where an input of the graph comes from.
  struct Feed {
    amps_value* value;
    size_t argument;
    int view;                     // of its tensors; -1: the argument is a number
    amps_dtype dtype = AMPS_F64;  // of a number
  };
  friend class PreparedBase;

  Value value_of(size_t argument);
  std::vector<Tensor> wanted_results(Values values, std::span<const Wanted> wanted);
  amps_value* unshaped(amps_value* value) const;
  std::unique_ptr<Prepared> as_call(std::span<const Tensor> results);
  std::unique_ptr<Prepared> as_executable(std::span<const Tensor> results);

  const Kernel& kernel_;
  amps_device* device_;
  std::span<const Argument> arguments_;
  Builder builder_;
  std::vector<Feed> feeds_;
  std::vector<int> places_;
};

}  // namespace anymps::lowering
