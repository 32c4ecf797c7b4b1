// SPDX-License-Identifier: Apache-2.0
// The innermost part of direct convolutions: a few neighbouring pixels of a result, and some
// vectors of their channels, as sums over pieces of the rows of the image under them. Compiled for
// AVX2 and AVX-512.
#pragma once

#include <algorithm>
#include <cstdint>

#include "drivers/cpu/common/tile_activation.h"

namespace anymps::cpu::direct {

// Elements that lie side by side under a pixel, and the weights that they meet.
struct Segment {
  const float* x = nullptr;
  const float* w = nullptr;  // [depth, vectors * lanes], zeros after the columns
  int64_t depth = 0;
};

// Few columns would leave most of a vector empty. Then parts of the depth are side by side in it:
// with a spread of n, a power of two and at least the columns, lane i is for column i % n and every
// n-th element of the depth from i / n * n on. Weights are [blocks of the lanes, n, lanes].
// y[pixels, columns] = activation(sum over segments of x[pixels, depth] * w + bias + residual)
struct Tile {
  int64_t pixels = 0, columns = 0, spread = 0;  // spread: 0 for none
  const Segment* segments = nullptr;
  int64_t count = 0;            // of segments
  int64_t x_step = 0;           // from a pixel to the next
  const float* bias = nullptr;  // null: none
  const float* residual = nullptr;
  float* y = nullptr;
  int64_t y_step = 0;  // of y and of the residual
  TileActivation activation;
};

struct TileShape {
  int64_t lanes = 0, vectors = 0;  // vectors: of a tile, at most; no lanes: tiles cannot be run
};
TileShape tile_shape();

// Columns, cut into panels of nearly the same width, in whole vectors.
struct Panels {
  Panels(const TileShape& shape, int64_t columns)
      : lanes(shape.lanes),
        vectors((columns + shape.lanes - 1) / shape.lanes),
        count((vectors + shape.vectors - 1) / shape.vectors) {}
  // The first column of panel i, which is also how many come before it.
  int64_t begin(int64_t i) const {
    return (i * (vectors / count) + std::min(i, vectors % count)) * lanes;
  }
  int64_t lanes, vectors, count;
};

void run_tile(const Tile& tile);

}  // namespace anymps::cpu::direct
