// SPDX-License-Identifier: Apache-2.0
// Mixed precision: a float graph whose products are computed in a half type. It is asked for, not
// part of the pipeline, because results differ from those of the graph as it is.
#pragma once

#include <memory>

#include "graph/graph.h"

namespace anymps {

// The same graph with the same inputs and outputs. Products (matrices, convolutions, attention)
// take and give `half` (f16 or bf16); what follows them elementwise, moves elements or pools stays
// in it as long as nothing of f32 joins; all else (sums, norms, softmax, exponentials) is f32.
std::unique_ptr<Graph> with_precision(const Graph& graph, DType half);

}  // namespace anymps
