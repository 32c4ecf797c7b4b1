// SPDX-License-Identifier: Apache-2.0
// When Winograd's method is worth while. It has fewer products, but transforms its inputs and
// outputs, and reads weights that are four (or 16 / 9) times as many, or transforms them late, in
// the cache, each time. All is counted in operations of the products: where few pixels share the
// weights, reading them is what takes time.
#include <algorithm>
#include <string>

#include "base/env.h"
#include "base/error.h"
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
// For each weight that is transformed late, of tiles of 2x2 and of 4x4. That is worth while where
// those of a layer come from memory in each run, whatever else there is in the model.
constexpr double kOfLate2 = 10, kOfLate4 = 20;
constexpr double kManyBytes = 8 << 20;

constexpr int64_t kLeastBlock = 2 * kGemmRows;  // tiles of a task
constexpr int64_t kInputBytes = 2 << 20;        // of a task's transformed inputs, at most
constexpr int64_t kSumsBytes = 256 << 10;       // of its sums: a part of the L2 cache

double bytes_of_weights(const WinogradTiles& t, int64_t each) {
  return static_cast<double>(each * t.in_channels * t.out_channels) * sizeof(float);
}

double direct_cost(const WinogradTiles& t) {
  const auto pixels = static_cast<double>(t.images * t.out_height * t.out_width);
  return 2 * 9 * pixels * static_cast<double>(t.in_channels * t.out_channels) +
         kOfByte * bytes_of_weights(t, 9);
}

double winograd_cost(const WinogradTiles& t) {
  const auto points = static_cast<double>(t.points()), depth = static_cast<double>(t.in_channels);
  const auto in = static_cast<double>(in_whole_vectors(t.in_channels));
  const auto out = static_cast<double>(in_whole_vectors(t.out_channels));
  const double all = points * static_cast<double>(t.count());
  const int64_t blocks = (t.count() + most_tiles(t) - 1) / most_tiles(t);
  return 2 * all * depth * out + kOfTransformed * all * (in + out) +
         kOfByte * bytes_of_weights(t, t.packed_weights()) +
         (t.late ? (t.edge == 2 ? kOfLate2 : kOfLate4) * static_cast<double>(blocks) * points *
                       depth * out
                 : 0);
}

// Cut as ANYMPS_TUNE ("4x4", "2x2 late") or ANYMPS_WINOGRAD ("4", "2 late") asks for it.
WinogradTiles cut_as_asked(WinogradTiles t, std::string_view way) {
  t.edge = way.starts_with('2') ? 2 : 4;
  t.late = way.ends_with("late");
  t.down = (t.out_height + t.edge - 1) / t.edge;
  t.across = (t.out_width + t.edge - 1) / t.edge;
  return t;
}

}  // namespace

std::string describe_tiles(const WinogradTiles& t) {
  return fmt::format("{0}x{0}{1}", t.edge, t.late ? " late" : "");
}

int64_t most_tiles(const WinogradTiles& t) {
  const int64_t floats = t.points() * static_cast<int64_t>(sizeof(float));
  const int64_t most = std::min(kInputBytes / (floats * in_whole_vectors(t.in_channels)),
                                kSumsBytes / (floats * kWidestPanel));
  return std::clamp(most / kGemmRows * kGemmRows, kLeastBlock, kMostWinogradBlock);
}

bool cut_into_tiles(WinogradTiles& tiles, std::string& why) {
  const std::string asked = env_string("ANYMPS_WINOGRAD");
  const std::string_view way = AskedWay::now();
  if (asked == "off") return refuse<bool>(why, "ANYMPS_WINOGRAD=off");
  if (!asked.empty() || !way.empty()) {
    tiles = cut_as_asked(tiles, asked.empty() ? way : asked);
    if (way.empty() || describe_tiles(tiles) == way) return true;
    return refuse<bool>(why, "ANYMPS_WINOGRAD=" + asked);
  }
  const WinogradTiles whole = tiles;
  double least = direct_cost(tiles) / kLeastGain;
  bool worth = false;
  for (const std::string_view each : {"4 late", "4", "2 late", "2"}) {
    const WinogradTiles t = cut_as_asked(whole, each);
    if (t.late && bytes_of_weights(t, t.points()) < kManyBytes) continue;
    const double cost = winograd_cost(t);
    if (cost >= least) continue;
    least = cost;
    tiles = t;
    worth = true;
  }
  return worth || refuse<bool>(why, "a direct one is as fast");
}

}  // namespace anymps::cpu
