// SPDX-License-Identifier: Apache-2.0
// What tests of passes share: run one pass or all of them, show the graph before and after, and
// check that both compute the same numbers with the reference kernels.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "graph/graph.h"
#include "graph/printer.h"
#include "passes/pass.h"

namespace anymps::testing {

using Ints = std::vector<int64_t>;
inline const Dim kN = Dim::symbol("N");

// A constant with numbers from a seed.
Value* weights(Graph& graph, const std::string& name, Shape shape, double low = -1, double high = 1,
               DType dtype = DType::kF32);

// What a driver that fuses asks for; constants are folded with the reference kernels.
PassContext fusing(bool nhwc = false);

// Runs the passes named (none: the whole pipeline) and checks that the numbers stay the same.
// Returns how many places changed.
int rewrite(Graph& graph, const std::vector<std::string>& names, PassContext context = fusing(),
            double tolerance = 1e-4);

// The nodes of a graph, one per line: to_text without its frame.
std::string nodes_of(const Graph& graph);

// How many nodes of an op there are.
int count(const Graph& graph, std::string_view op);

}  // namespace anymps::testing
