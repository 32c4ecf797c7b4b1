// SPDX-License-Identifier: Apache-2.0
// 3x3 convolutions by Winograd's method, and its vector code: the three linear maps around the
// products. A tile of edge x edge outputs needs (edge + 2)^2 products a channel instead of
// 9 edge^2: a quarter of them for an edge of 4, 1/2.25 for an edge of 2.
#pragma once

#include <cstdint>

#include "drivers/cpu/common/tile_activation.h"

namespace anymps::cpu {

// All outputs, cut into tiles; those at the lower and the right border may reach beyond it.
struct WinogradTiles {
  int64_t edge = 4;   // outputs along a side of a tile: 2 or 4
  bool late = false;  // weights are transformed while they are used, not before
  int64_t images = 0, height = 0, width = 0, in_channels = 0;  // of x
  int64_t out_height = 0, out_width = 0, out_channels = 0;
  int64_t top = 0, left = 0;     // padding
  int64_t down = 0, across = 0;  // tiles of an image

  int64_t count() const { return images * down * across; }
  int64_t side() const { return edge + 2; }  // inputs along a side of a tile
  int64_t points() const { return side() * side(); }
  // Weights of an input and an output channel, as they are packed.
  int64_t packed_weights() const { return late ? 9 : points(); }
};

// Where a tile begins, and how many of its outputs are in the image.
struct WinogradPlace {
  int64_t image, row, column, rows, columns;
};

inline WinogradPlace place_of(const WinogradTiles& t, int64_t tile) {
  const int64_t in_image = tile % (t.down * t.across);
  const int64_t row = in_image / t.across * t.edge, column = in_image % t.across * t.edge;
  return {tile / (t.down * t.across), row, column,
          t.out_height - row < t.edge ? t.out_height - row : t.edge,
          t.out_width - column < t.edge ? t.out_width - column : t.edge};
}

struct WinogradInput {
  const float* x = nullptr;      // [images, height, width, in_channels]
  const float* zeros = nullptr;  // in_channels of them: what is outside the image
  float* to = nullptr;           // of the first tile: [points, tiles, in_channels]
  int64_t row = 0, plane = 0;    // its strides; rows have room for whole vectors
};

struct WinogradOutput {
  const float* from = nullptr;      // of the first tile: [points, tiles, row]
  int64_t row = 0, plane = 0;       // its strides; a row is whole vectors
  int64_t columns = 0;              // channels that are computed, from the first of these pointers:
  const float* bias = nullptr;      // null: none
  const float* residual = nullptr;  // like y; null: none
  float* y = nullptr;               // [images, out_height, out_width, out_channels]
  TileActivation activation;
};

// Weights of input channels: vectors of output channels, whose strides are these.
struct WinogradTaps {
  const float* from = nullptr;
  int64_t channel = 0, tap = 0;
};

// [channels, 9, width] to [points, channels, width], planes apart; those of tiles that are not late
// in f64, since that is done once.
void winograd_weights(const WinogradTiles& tiles, const WinogradTaps& taps, int64_t channels,
                      int64_t width, float* to, int64_t plane);
void winograd_input(const WinogradTiles& tiles, int64_t first, int64_t count,
                    const WinogradInput& input);
// Sets broken[i] of each tile with a sum that is not finite, and leaves the others'.
void winograd_output(const WinogradTiles& tiles, int64_t first, int64_t count,
                     const WinogradOutput& output, bool* broken);
// Stores one tile's outputs from their sums: [edge, edge, output.row].
void winograd_store(const WinogradTiles& tiles, int64_t tile, const WinogradOutput& output,
                    const float* sums);

}  // namespace anymps::cpu
