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

// The elements of a constant as a value for the attribute that is called like input i of an op: a
// record may take a list of integers or of f32 either way.
std::optional<AttrValue> as_attribute(const Op& op, size_t i, const Constant& constant);

// Whether a value is a constant list, or a single element. Lists are short: what is not may be a
// recipe for terabytes.
bool is_list(const Value& value);

// The elements of a constant of integers, and of one of any real dtype.
std::vector<int64_t> ints_of(const Constant& constant);
std::vector<double> doubles_of(const Constant& constant);

}  // namespace anymps
