// SPDX-License-Identifier: Apache-2.0
// Ragged batches: inputs of requests that differ in shape are laid end to end, further inputs tell
// the model where each one begins, and outputs are cut in the same way.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "serving/check.h"

namespace anymps::serving {

// The shape of a ragged input of all requests together, for a graph input of this rank: one axis
// takes all elements, more axes keep the extents that the requests share. Throws Error if they do
// not share them.
std::vector<int64_t> ragged_shape(const Settings& settings, size_t input, int64_t rank,
                                  std::span<Item* const> items);
bool same_tail(const Item& a, const Item& b, size_t input, int64_t rank);

// The elements of a batch input, as the numbers that they are.
struct BatchInput {
  std::vector<int64_t> dims;
  std::vector<int64_t> values;  // as many as dims say
};
BatchInput make_batch_input(const BatchInputSettings& batch, size_t source,
                            std::span<Item* const> items);

// The part of an output that belongs to this request: the output's dims, with the extents of the
// source input where they are variable.
std::vector<int64_t> scattered_shape(const Settings& settings, const TensorSettings& output,
                                     size_t source, const Item& item);

}  // namespace anymps::serving
