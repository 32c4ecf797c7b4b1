// SPDX-License-Identifier: Apache-2.0
// What a 3x3 convolution by Winograd's method is made of besides its vector code: when it is worth
// while, its weights, and what is computed directly where the method cannot.
#pragma once

#include <string>
#include <vector>

#include "drivers/cpu/layers/winograd/winograd_simd.h"
#include "drivers/kernel.h"

namespace anymps::cpu {

// Where the plain weights lie: [out, in, 3, 3] by these strides.
struct WinogradWeights {
  ConstantPtr constant;
  int64_t out = 0, in = 0, tap = 0;
};

// The edge of the tiles for a convolution of these extents; 0, with the reason, where a direct one
// is as fast or ANYMPS_WINOGRAD says so.
int64_t winograd_edge(const WinogradTiles& tiles, std::string& why);
void cut_into_tiles(WinogradTiles& tiles, int64_t edge);

// The weights of all panels (linear/gemm_simd.h), each [points, in_channels, width], then zeros for
// a pixel outside the image.
int64_t packed_winograd_floats(const WinogradTiles& tiles);
void pack_winograd(const WinogradTiles& tiles, const WinogradWeights& weights, const float* plain,
                   float* packed);

// Sums as a direct convolution has them, for a panel of output channels: for tiles that meet an
// infinity or a NaN, which Winograd's sums would spread to pixels that do not see it, and for those
// whose sums leave f32's range. All memory is taken when there is such a tile.
class DirectSums {
 public:
  // `width` weights from output channel `column` on, of which `columns` are there.
  DirectSums(const WinogradTiles& tiles, const WinogradWeights& weights, int64_t column,
             int64_t columns, int64_t width);
  // [edge, edge, width]
  void of_tile(const float* x, int64_t tile, float* sums);

 private:
  const WinogradTiles& t_;
  int64_t width_;
  std::vector<float> weights_, inputs_;
};

}  // namespace anymps::cpu
