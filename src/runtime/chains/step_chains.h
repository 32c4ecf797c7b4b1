// SPDX-License-Identifier: Apache-2.0
// Steps of a plan in the making that its driver does as one (Driver::join): what lies between them
// then has no memory.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "runtime/plan.h"

namespace anymps {

struct ArenaTensor {
  std::string name;
  size_t bytes = 0;
  size_t first = 0, last = 0;  // steps
  int alias_of = -1;           // a tensor that is not itself an alias
  // Of the values that lie in it, its aliases' too: uses by nodes that are still to come.
  size_t uses_left = 0;
  bool is_result = false;  // one of them is an output of the graph
};

struct PlanParts {
  std::vector<Step>& steps;
  std::vector<Location>& pointers;  // the places of the pointer table
  std::vector<ArenaTensor>& arena;
};

// Joined steps take the place of theirs, in `parts`. `may_lie_in_feed` tells results that may.
void join_steps(Driver& driver, const Graph& graph, PlanParts parts,
                const std::function<bool(size_t result)>& may_lie_in_feed);

}  // namespace anymps
