// SPDX-License-Identifier: Apache-2.0
// Reverse-mode differentiation of graphs. The gradient is more nodes in the same graph, made of
// ordinary ops, so that passes, drivers and files need to know nothing, and so that it can be
// differentiated again.
#pragma once

#include <vector>

#include "graph/graph.h"

namespace anymps {

// The gradient of y to each of xs: of sum(seed * y), where `seed` has y's type and no seed means
// ones. xs may be inputs, constants or values in between, of a float dtype. What y does not depend
// on gets zeros, or is an error with `all_reachable`. Fails, naming the node, when an op on the way
// has no gradient.
std::vector<Value*> gradient(Graph& graph, Value* y, const std::vector<Value*>& xs,
                             Value* seed = nullptr, bool all_reachable = false);

}  // namespace anymps
