// SPDX-License-Identifier: Apache-2.0
// The numbers of one region, for the kernels of regions of interest and of their gradients.
#pragma once

#include <array>

#include "drivers/reference/reference.h"

namespace anymps {

template <size_t N>
std::array<double, N> numbers_of(const View& rois, int64_t r) {
  std::array<double, N> numbers;
  for (size_t k = 0; k < N; ++k)
    numbers[k] = load_double(rois, r * rois.stride(0) + static_cast<int64_t>(k) * rois.stride(1));
  return numbers;
}

}  // namespace anymps
