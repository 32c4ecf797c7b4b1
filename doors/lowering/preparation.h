// SPDX-License-Identifier: Apache-2.0
// From a kernel's row and arguments to what runs: the graph is built, and is called op by op if it
// is small, else compiled.
#pragma once

#include "lowering/builder.h"
#include "lowering/kernel.h"
#include "lowering/prepared.h"

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
  // What a step has made for a later one, and where it lies.
  struct Between {
    amps_value* value;
    int64_t offset;
  };

  Value value_of(size_t argument);
  std::vector<Tensor> wanted_results(const Values& values, std::span<const Wanted> wanted);
  amps_value* unshaped(amps_value* value) const;
  int64_t bytes_of(amps_value* value) const;
  std::vector<const Builder::Node*> needed(std::span<const Tensor> results) const;
  bool small(std::span<const Builder::Node* const> nodes) const;
  bool apart(std::span<const Builder::Node* const> nodes, std::span<const Tensor> results) const;
  static Source source_of(const Feed& feed);
  std::optional<Source> source_of(amps_value* given, const PreparedCalls& calls,
                                  std::span<const Between> between) const;
  std::unique_ptr<PreparedCalls> as_calls(std::span<const Tensor> results);
  std::vector<amps_alias> aliases_of(std::span<const Tensor> results) const;
  std::unique_ptr<Prepared> as_executable(std::span<const Tensor> results);

  const Kernel& kernel_;
  amps_device* device_;
  std::span<const Argument> arguments_;
  Builder builder_;
  std::vector<Feed> feeds_;
  std::vector<int> places_;
  std::vector<bool> row_major_;    // of results
  std::vector<InPlace> in_place_;  // of results
};

}  // namespace anymps::lowering
