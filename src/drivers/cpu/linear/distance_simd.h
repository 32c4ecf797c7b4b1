// SPDX-License-Identifier: Apache-2.0
// Distances of one point to a tile of others, compiled for every instruction set.
#pragma once

#include <cstdint>

namespace anymps::cpu {

inline constexpr int64_t kDistanceTile = 64;  // points that stand side by side

// sums[j] = sum over k of (point[k] - tile[k][j])^2, or of the absolute values.
void sum_distances(const double* point, int64_t axes, const double* tile, bool squares,
                   double* sums);

}  // namespace anymps::cpu
