// SPDX-License-Identifier: Apache-2.0
// Parts of graphs with loops and branches, for tests.
#pragma once

#include <memory>

#include "graph/graph.h"

namespace anymps::testing {

using GraphPtr = std::shared_ptr<Graph>;

// Scalars: the number of a round, and whether to go on.
inline const ValueType kNumber{DType::kI64, true, {}, std::nullopt};
inline const ValueType kTruth{DType::kBool, true, {}, std::nullopt};

// The attribute of a node that holds a graph.
inline NamedAttr body(const char* name, GraphPtr graph) {
  return {name, AttrValue(std::move(graph))};
}

}  // namespace anymps::testing
