// SPDX-License-Identifier: Apache-2.0
// One node on memory of its own, so that its kernels can be measured beside each other: inputs of
// its shapes and strides filled with numbers of its op's domain, its real constants, and results
// that can be compared. Between two runs as much other memory is read as the model reads between
// two runs of the node: weights that would come from memory there come from memory here.
#pragma once

#include <vector>

#include "runtime/device.h"
#include "runtime/kernel_choice.h"

namespace anymps {

class Trial {
 public:
  // Whether inputs can be made up: indices, lengths and strings cannot.
  static bool possible(const KernelRequest& request);

  // `other`: memory to be read between two runs, possibly empty. `threads`: of the runs.
  Trial(Device& device, const KernelRequest& request, const BufferRef& other, int threads);

  // Seconds of one run, which is the mean of `times` in a row.
  double run(const Kernel& kernel, int times = 1);
  // What the last run computed is what the results of later ones are compared with.
  void expect();

  struct Agreement {
    std::string difference;  // beyond the op's tolerance; "": none
    bool same_bits = false;  // of so many elements that it is no accident
  };
  Agreement agreement() const;

 private:
  void* place(const TensorDesc& desc, BufferRef& buffer);
  void fill(size_t input, void* data);
  void read_other() const;
  void read_inputs() const;

  Device& device_;
  const KernelRequest& request_;
  const BufferRef& other_;
  int threads_;
  std::vector<std::shared_ptr<const void>> held_;
  std::vector<std::span<const char>> made_;  // the memory of inputs that are no constants
  std::vector<void*> inputs_, results_, expected_;
  BufferRef scratch_;
};

}  // namespace anymps
