// SPDX-License-Identifier: Apache-2.0
// What a 3x3 convolution by Winograd's method is made of besides its vector code: when it is worth
// while, its weights, and what is computed directly where the method cannot.
#pragma once

#include <string>
#include <vector>

#include "drivers/cpu/layers/winograd/winograd_simd.h"
#include "drivers/cpu/linear/gemm_simd.h"
#include "drivers/kernel.h"

namespace anymps::cpu {

inline constexpr int64_t kMostWinogradBlock = 8 * kGemmRows;  // tiles of a task
inline constexpr int64_t kWidestPanel = kGemmLanes * kGemmVectors;

inline int64_t in_whole_vectors(int64_t channels) {
  return (channels + kGemmLanes - 1) / kGemmLanes * kGemmLanes;
}

// Where the plain weights lie: [out, in, 3, 3] by these strides.
struct WinogradWeights {
  ConstantPtr constant;
  int64_t out = 0, in = 0, tap = 0;
};

// Cuts a convolution of these extents into tiles as they suit it best; false, with the reason,
// where a direct one is as fast or ANYMPS_WINOGRAD says so.
bool cut_into_tiles(WinogradTiles& tiles, std::string& why);
std::string describe_tiles(const WinogradTiles& tiles);  // as ANYMPS_TUNE names them
int64_t most_tiles(const WinogradTiles& tiles);          // of one task

// The weights of all panels (linear/gemm_simd.h), each [points, in_channels, width], or those of
// late tiles as they are, [in_channels, 9, width]; then zeros for a pixel outside the image.
int64_t packed_winograd_floats(const WinogradTiles& tiles);
WinogradTaps late_taps(const float* panel, int64_t channel, int64_t width);
// `factors` of the output channels, or null.
void pack_winograd(const WinogradTiles& tiles, const WinogradWeights& weights, const float* plain,
                   const double* factors, float* packed);

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
