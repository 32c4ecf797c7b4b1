// SPDX-License-Identifier: Apache-2.0
// When Winograd's method is worth while. It has fewer products, but transforms its inputs and
// outputs, and reads weights that are four (or 16 / 9) times as many. All is counted in operations
// of the products: where few pixels share the weights, reading them is what takes time.
#include "base/env.h"
#include "drivers/cpu/layers/winograd/winograd.h"
#include "drivers/cpu/linear/gemm_simd.h"
#include "drivers/kernel_ways.h"

namespace anymps::cpu {

namespace {

// Operations in the time of one other thing; docs/performance.md has the measurements. A byte is
// one that comes from memory, asked for ahead: 3 to 6.5, with weights in a cache less.
constexpr double kOfByte = 6;
constexpr double kOfTransformed = 25;  // for each point of a tile, input or output, and channel
constexpr double kLeastGain = 1.15;

double in_vectors(int64_t channels) {
  const int64_t vectors = (channels + kGemmLanes - 1) / kGemmLanes;
  return static_cast<double>(vectors * kGemmLanes);
}

double bytes_of_weights(const WinogradTiles& t, double each) {
  return each * static_cast<double>(t.in_channels * t.out_channels) * sizeof(float);
}

double direct_cost(const WinogradTiles& t) {
  const auto pixels = static_cast<double>(t.images * t.out_height * t.out_width);
  return 2 * 9 * pixels * static_cast<double>(t.in_channels * t.out_channels) +
         kOfByte * bytes_of_weights(t, 9);
}

double winograd_cost(const WinogradTiles& t) {
  const auto points = static_cast<double>(t.points());
  const double in = in_vectors(t.in_channels), out = in_vectors(t.out_channels);
  const double all = points * static_cast<double>(t.count());
  return 2 * all * static_cast<double>(t.in_channels) * out + kOfTransformed * all * (in + out) +
         kOfByte * bytes_of_weights(t, points);
}

}  // namespace

void cut_into_tiles(WinogradTiles& t, int64_t edge) {
  t.edge = edge;
  t.down = (t.out_height + edge - 1) / edge;
  t.across = (t.out_width + edge - 1) / edge;
}

int64_t winograd_edge(const WinogradTiles& tiles, std::string& why) {
  const std::string asked = env_string("ANYMPS_WINOGRAD");
  const std::string_view way = AskedWay::now();
  if (asked == "off") return refuse<int64_t>(why, "ANYMPS_WINOGRAD=off");
  if (!asked.empty() && !way.empty() && !way.starts_with(asked))
    return refuse<int64_t>(why, "ANYMPS_WINOGRAD=" + asked);
  if (!asked.empty()) return asked == "2" ? 2 : 4;
  if (!way.empty()) return way.starts_with('2') ? 2 : 4;
  int64_t best = 0;
  double least = direct_cost(tiles) / kLeastGain;
  for (const int64_t edge : {4, 2}) {
    WinogradTiles t = tiles;
    cut_into_tiles(t, edge);
    const double cost = winograd_cost(t);
    if (cost >= least) continue;
    least = cost;
    best = edge;
  }
  return best ? best : refuse<int64_t>(why, "a direct one is as fast");
}

}  // namespace anymps::cpu
