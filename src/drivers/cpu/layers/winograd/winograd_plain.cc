// SPDX-License-Identifier: Apache-2.0
// Weights for Winograd's method, and the sums that are computed without it.
#include <algorithm>

#include "drivers/cpu/layers/winograd/winograd.h"
#include "drivers/cpu/linear/gemm_simd.h"
#include "drivers/cpu/linear/packing/panel_packing.h"
#include "drivers/cpu/threads.h"
#include "memory/pages.h"

namespace anymps::cpu {

namespace {

constexpr int64_t kTaps = 9;
constexpr int64_t kChannels = 8;  // whose taps are transformed at a time
constexpr double kPackNs = 0.6;   // of one packed weight

int64_t zeros_of(const WinogradTiles& t) { return in_whole_vectors(t.in_channels); }

// [channels, 9, width] from the plain tensor's first of them, zeros after the columns.
void put_taps(const WinogradWeights& w, PlainPanel plain, int64_t channels, int64_t width,
              float* to) {
  plain.lane_stride = w.out;
  plain.depth_stride = w.tap;
  if (w.in == kTaps * w.tap) {
    plain.depth = channels * kTaps;
    return pack_panel(plain, width, to);
  }
  plain.depth = kTaps;
  for (int64_t i = 0; i < channels; ++i, plain.from += w.in, to += kTaps * width)
    pack_panel(plain, width, to);
}

}  // namespace

int64_t packed_winograd_floats(const WinogradTiles& t) {
  return t.packed_weights() * t.in_channels * in_whole_vectors(t.out_channels) + zeros_of(t);
}

WinogradTaps late_taps(const float* panel, int64_t channel, int64_t width) {
  return {panel + channel * kTaps * width, kTaps * width, width};
}

void pack_winograd(const WinogradTiles& t, const WinogradWeights& weights, const float* plain,
                   const double* factors, float* packed) {
  const GemmPanels panels(t.out_channels);
  const int64_t of_column = t.packed_weights() * t.in_channels;
  const int64_t weights_of_panel = of_column * kGemmLanes * panels.vectors / panels.count;
  const double ns = kPackNs * static_cast<double>(weights_of_panel);
  parallel_for(0, panels.count, ns, [&](int64_t first, int64_t last) {
    float taps[kChannels * kTaps * kWidestPanel];
    for (int64_t panel = first; panel < last; ++panel) {
      const int64_t begin = panels.begin(panel), width = panels.begin(panel + 1) - begin;
      PlainPanel own;
      own.from = plain + begin * weights.out;
      own.lanes = std::min(width, t.out_channels - begin);
      own.factors = factors ? factors + begin : nullptr;
      float* const to = packed + begin * of_column;
      map_for_writing(to, sizeof(float) * static_cast<size_t>(width * of_column));
      if (t.late) {
        put_taps(weights, own, t.in_channels, width, to);
        continue;
      }
      for (int64_t i = 0; i < t.in_channels; i += kChannels) {
        const int64_t channels = std::min(kChannels, t.in_channels - i);
        put_taps(weights, own, channels, width, taps);
        own.from += channels * weights.in;
        winograd_weights(t, late_taps(taps, 0, width), channels, width, to + i * width,
                         t.in_channels * width);
      }
    }
  });
  std::fill_n(packed + packed_winograd_floats(t) - zeros_of(t), zeros_of(t), 0.0f);
}

DirectSums::DirectSums(const WinogradTiles& tiles, const WinogradWeights& weights, int64_t column,
                       int64_t columns, int64_t width)
    : t_(tiles),
      width_(width),
      weights_(static_cast<size_t>(kTaps * tiles.in_channels * width)),
      inputs_(static_cast<size_t>(tiles.edge * tiles.edge * kTaps * tiles.in_channels)) {
  const Constant::Bytes plain = weights.constant->data();
  const float* from = reinterpret_cast<const float*>(plain.get()) + column * weights.out;
  float* to = weights_.data();
  for (int64_t tap = 0; tap < kTaps; ++tap)
    for (int64_t i = 0; i < t_.in_channels; ++i, to += width)
      for (int64_t o = 0; o < columns; ++o)
        to[o] = from[o * weights.out + i * weights.in + tap * weights.tap];
}

void DirectSums::of_tile(const float* x, int64_t tile, float* sums) {
  const WinogradPlace place = place_of(t_, tile);
  float* to = inputs_.data();
  for (int64_t pixel = 0; pixel < t_.edge * t_.edge; ++pixel)
    for (int64_t tap = 0; tap < kTaps; ++tap, to += t_.in_channels) {
      const int64_t row = place.row + pixel / t_.edge + tap / 3 - t_.top;
      const int64_t column = place.column + pixel % t_.edge + tap % 3 - t_.left;
      if (row < 0 || row >= t_.height || column < 0 || column >= t_.width)
        std::fill_n(to, t_.in_channels, 0.0f);
      else
        std::copy_n(x + ((place.image * t_.height + row) * t_.width + column) * t_.in_channels,
                    t_.in_channels, to);
    }
  GemmPanel g;
  g.rows = t_.edge * t_.edge;
  g.depth = g.a_row = kTaps * t_.in_channels;
  g.columns = g.y_row = width_;
  g.a = inputs_.data();
  g.b = weights_.data();
  g.y = sums;
  run_gemm(g);
}

}  // namespace anymps::cpu
