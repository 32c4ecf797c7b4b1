// SPDX-License-Identifier: Apache-2.0
// The search for distinct slices that the record of `unique` measures with and its kernels use.
#pragma once

#include <vector>

#include "base/shape.h"

namespace anymps {

struct Distinct {
  std::vector<int64_t> first;    // where each distinct slice comes first
  std::vector<int64_t> inverse;  // of each slice, which distinct one it is
  std::vector<int64_t> counts;
};

// Slices along `axis`, or elements for axis -1, of a contiguous tensor. In ascending order
// (lexicographic for slices, NaN last and equal to NaN), or in the order of their first coming.
Distinct find_distinct(const TensorDesc& desc, const void* data, int64_t axis, bool sorted);

// The same for elements, not slices, that are numbers: pairs of element and place are sorted, which
// is much faster.
Distinct find_distinct_numbers(const TensorDesc& desc, const void* data, bool sorted);

// Elements or slices that differ from the one before them.
Distinct find_changes(const TensorDesc& desc, const void* data, int64_t axis);

// The axis that the attribute `axes` names, or -1: flattened.
int64_t unique_axis(const std::vector<int64_t>& axes, int64_t rank);

}  // namespace anymps
