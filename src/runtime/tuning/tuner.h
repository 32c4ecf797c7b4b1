// SPDX-License-Identifier: Apache-2.0
// ANYMPS_TUNE=on: for a plan's nodes that several kernels can compute, the fastest by measuring.
// The first in the driver's list stays unless another one is clearly faster, so that noise changes
// nothing. Results remain the same bits for any number of threads: a kernel that rounds otherwise
// than the first is chosen by its times on one thread, and for more threads only among those that
// round as that one does.
#pragma once

#include <string>
#include <vector>

#include "base/denormals.h"
#include "graph/graph.h"
#include "runtime/device.h"
#include "runtime/kernel_choice.h"

namespace anymps {

// For one plan, whose kernels it chooses one after the other.
class Tuner {
 public:
  static bool asked();  // by ANYMPS_TUNE

  // `threads` of the plan's runs, 0: all; `denormals` as in its runs.
  Tuner(Device& device, const Graph& graph, int threads, Denormals denormals);
  ~Tuner();  // saves what it has found
  Tuner(const Tuner&) = delete;
  Tuner& operator=(const Tuner&) = delete;

  // What choose_kernel() gives, or a faster one.
  KernelChoice choose(const KernelRequest& request);

  struct Candidate {
    std::string name;  // "onednn", "winograd/4x4"
    KernelPtr kernel;
    double seconds = 0;  // the least of its runs
  };

 private:
  struct Verdict {
    std::string name;
    bool lasts = true;  // false: there was no time or memory to measure
    std::string told = {};
  };

  bool can_measure(const KernelRequest& request, const KernelChoice& usual) const;
  KernelPtr make(const KernelRequest& request, const std::string& name) const;
  std::vector<Candidate> candidates(const KernelRequest& request) const;
  uint64_t key_of(const KernelRequest& request, const std::string& usual) const;
  Verdict decide(const KernelRequest& request, const std::string& usual, int threads);
  Verdict measure(const KernelRequest& request, const std::string& usual, int threads);
  Verdict race(const KernelRequest& request, const std::string& usual, int threads);

  Device& device_;
  int threads_;
  Denormals denormals_;
  size_t other_bytes_;  // that the model reads between two runs of a node
  BufferRef other_;
  bool verbose_;
};

}  // namespace anymps
