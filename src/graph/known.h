// SPDX-License-Identifier: Apache-2.0
// What is known of the elements of a value before anything runs.
#pragma once

#include <optional>
#include <vector>

#include "graph/graph.h"

namespace anymps {

// The elements of a list of integers, or of a single one: a constant's, or what inference knows;
// nothing unless all are numbers.
std::optional<std::vector<int64_t>> known_ints(const Value& value);

// Whether a value is a constant list, or a single element. Lists are short: what is not may be a
// recipe for terabytes.
bool is_list(const Value& value);

// The elements of a constant of any real dtype.
std::vector<double> doubles_of(const Constant& constant);

}  // namespace anymps
