// SPDX-License-Identifier: Apache-2.0
// The first few elements of short lines of f32 in order, without branches that depend on them.
#pragma once

#include <cstdint>

namespace anymps::cpu {

inline constexpr int64_t kMostOrdered = 24;       // elements that are asked for
inline constexpr int64_t kLongestOrdered = 4096;  // elements of a line

// The first k of n elements as words of SortItem (semantics/sort_items.h), in order. False: too
// many are equal, and nothing was written.
bool order_first(const float* x, int64_t n, int64_t k, bool descending, uint64_t* words);

}  // namespace anymps::cpu
