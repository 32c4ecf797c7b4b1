// SPDX-License-Identifier: Apache-2.0
// Places the intermediate tensors of an executable in one arena, before it runs: tensors that live
// at different times share memory. The smallest arena is NP-hard to find, so this is a greedy
// search (a plainer one for very many tensors), and the plan carries a lower bound that says how
// good it is.
#pragma once

#include <cstddef>
#include <vector>

namespace anymps {

struct PlannedTensor {
  size_t size = 0;
  size_t alignment = 64;  // a power of two
  // The steps of the schedule at which the tensor is first written and last read, both included.
  size_t first_use = 0;
  size_t last_use = 0;
  // Tensors of the same group (>= 0) get the same offset: results in place, views from the start.
  int alias_group = -1;
};

struct MemoryPlan {
  std::vector<size_t> offsets;  // one for each tensor
  size_t arena_size = 0;
  size_t arena_alignment = 1;  // what the offsets' alignments ask of the arena's own address
  size_t lower_bound = 0;      // the most bytes alive in one step: no plan is smaller

  // 1 is the best there is.
  double ratio() const {
    return lower_bound ? static_cast<double>(arena_size) / static_cast<double>(lower_bound) : 1.0;
  }
};

// Deterministic: the same tensors give the same plan.
MemoryPlan plan_memory(const std::vector<PlannedTensor>& tensors);

}  // namespace anymps
