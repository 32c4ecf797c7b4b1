// SPDX-License-Identifier: Apache-2.0
// Results that a caller wants in memory where a plan cannot write them.
#pragma once

#include <span>
#include <vector>

#include "graph/graph.h"
#include "runtime/plan.h"
#include "runtime/tensor.h"

namespace anymps {

// Takes those results out of the list that are not row-major, which is how plans write, or that lie
// in the memory of a feed: they would be written while the feed is still read. `aliases` may lie
// just there: the plan was made for it. Empty when there are none. Fails if results share memory.
std::vector<Tensor> take_apart(const std::vector<Tensor>& feeds, std::vector<Tensor>& results,
                               const Graph& graph, std::span<const Alias> aliases);

}  // namespace anymps
