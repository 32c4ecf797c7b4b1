// SPDX-License-Identifier: Apache-2.0
// The peer: the recorded calls through PyTorch's dispatcher, on memory that PyTorch allocates.
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include "recording.h"

namespace bench {

class AtenSide {
 public:
  explicit AtenSide(const Recording& recording);
  // Memory that is there from the start, filled like the recorded one. The same numbers each time.
  void fill();
  // Runs a call that is not free; returns the nanoseconds it took. Free ones only take memory.
  double run(const RecordedCall& call);
  double release(const RecordedCall& call);
  at::Tensor tensor(int64_t which) const;
  const c10::Storage& storage(int64_t which) const { return storages_[static_cast<size_t>(which)]; }

 private:
  c10::IValue value(const Arg& arg, const c10::TypePtr& type) const;
  const Recording& recording_;
  std::vector<c10::Storage> storages_;
};

}  // namespace bench
