// SPDX-License-Identifier: Apache-2.0
// A short text that is equal for equal graphs (same constants, not merely equal ones): the key of
// the executable cache.
#pragma once

#include <string>

#include "graph/graph.h"

namespace anymps {

std::string fingerprint(const Graph& graph);

}  // namespace anymps
