// SPDX-License-Identifier: Apache-2.0
// Tensors of the device as the CPU's kernels take them, and back. They share their memory, so that
// nothing is copied, unless ANYMPS_TRANSFER=copy asks for what a device with its own memory does.
#pragma once

#include <vector>

#include <ATen/core/Tensor.h>

namespace anymps::aten {

// What a kernel does with an argument. Elements that are only written need not cross before.
enum class Use { kRead, kReadAndWritten, kWritten };

class CpuAliases {
 public:
  CpuAliases();
  // `copies`: whether they are copies instead of the same memory, whatever is asked for.
  explicit CpuAliases(bool copies) : copies_(copies) {}

  at::Tensor to_cpu(const at::Tensor& tensor, Use use = Use::kRead);
  at::Tensor to_device(const at::Tensor& tensor);
  // What the CPU's kernel has done to its arguments: to their shape or storage, or to a copy.
  void write_back();
  bool empty() const { return pairs_.empty(); }
  size_t bytes() const;

 private:
  struct Pair {
    at::Tensor device, cpu;
    Use use;
  };
  // A storage for the CPU: the device's own, or one that the parts which tensors use are copied to.
  c10::Storage storage_for(const at::Tensor& tensor, Use use) const;

  const bool copies_;
  std::vector<Pair> pairs_;
};

}  // namespace anymps::aten
