// SPDX-License-Identifier: Apache-2.0
// Tiles of up to 7 pixels and 2 vectors of channels (one on AVX2) stay in registers while the
// window is walked through: 7 divides the widths of most image models' layers.
#include "drivers/cpu/layers/depthwise_simd.h"

#include <algorithm>

#include "drivers/cpu/isa.h"

#define ANYMPS_AVX512_ONLY
#define HWY_TARGET_INCLUDE "drivers/cpu/layers/depthwise_simd.cc"
#include "drivers/cpu/all_targets.h"

#include "drivers/cpu/common/activation-inl.h"

HWY_BEFORE_NAMESPACE();
namespace anymps::cpu::HWY_NAMESPACE {

#if HWY_TARGET <= HWY_AVX2

namespace {

using Mask = hn::Mask<Tag>;
#if HWY_TARGET <= HWY_AVX3
constexpr size_t kLanes = 16;
#else
constexpr size_t kLanes = 8;
#endif

// The lanes of a tile's last vector that count. On AVX2 masks cost time: whole vectors have none.
template <bool kWhole>
struct Lanes {
  Mask mask;
  HWY_INLINE V load(const float* from) const {
    if constexpr (kWhole) return hn::LoadU(Tag(), from);
    return hn::MaskedLoad(mask, Tag(), from);
  }
  HWY_INLINE void store(V vector, float* to) const {
    if constexpr (kWhole)
      hn::StoreU(vector, Tag(), to);
    else
      hn::BlendedStore(vector, mask, Tag(), to);
  }
};

// Vectors of a pixel.
template <size_t N, typename Last>
HWY_INLINE void load(const float* from, Last last, V (&to)[N]) {
  for (size_t n = 0; n + 1 < N; ++n) to[n] = hn::LoadU(Tag(), from + n * kLanes);
  to[N - 1] = last.load(from + (N - 1) * kLanes);
}

// What the window adds to P pixels from `pixel` on. At a border it may leave the row.
template <bool kBorder, size_t P, size_t N, typename Last>
HWY_INLINE void add_taps(const DepthwiseRow& g, int64_t pixel, int64_t channel, Last last,
                         V (&sums)[P][N]) {
  const Tag d;
  const int64_t step = g.width_stride * g.channels;
  for (int64_t row = 0; row < g.rows; ++row) {
    const float* w = g.w + row * g.w_row + channel;
    int64_t column = pixel * g.width_stride - g.left;
    for (int64_t k = 0; k < g.kernel_width; ++k, w += g.channels, column += g.width_dilation) {
      V weights[N];
      load(w, last, weights);
      const float* x = g.x + row * g.x_row + column * g.channels + channel;
      for (size_t p = 0; p < P; ++p, x += step) {
        if (kBorder) {
          const int64_t at = column + static_cast<int64_t>(p) * g.width_stride;
          if (at < 0 || at >= g.in_width) continue;
        }
        for (size_t n = 0; n + 1 < N; ++n)
          sums[p][n] = hn::MulAdd(hn::LoadU(d, x + n * kLanes), weights[n], sums[p][n]);
        sums[p][N - 1] =
            hn::MulAdd(last.load(x + (N - 1) * kLanes), weights[N - 1], sums[p][N - 1]);
      }
    }
  }
}

// The same in the same order for windows of kWidth pixels that are next to each other: a column of
// the image is loaded once for all pixels that it is part of.
template <size_t kWidth, bool kBorder, size_t P, size_t N, typename Last>
HWY_INLINE void add_columns(const DepthwiseRow& g, int64_t pixel, int64_t channel, Last last,
                            V (&sums)[P][N]) {
  const int64_t first = pixel - g.left;
  const float* x = g.x + first * g.channels + channel;
  const float* w = g.w + channel;
  for (int64_t row = 0; row < g.rows; ++row, x += g.x_row, w += g.w_row) {
    V weights[kWidth][N];
    for (size_t k = 0; k < kWidth; ++k)
      load(w + static_cast<int64_t>(k) * g.channels, last, weights[k]);
    const float* from = x;
    HWY_UNROLL(11)  // all: sums stay in registers
    for (size_t column = 0; column < P + kWidth - 1; ++column, from += g.channels) {
      const int64_t at = first + static_cast<int64_t>(column);
      if (kBorder && (at < 0 || at >= g.in_width)) continue;
      V loaded[N];
      load(from, last, loaded);
      for (size_t k = 0; k < kWidth; ++k) {
        if (column < k || column - k >= P) continue;
        for (size_t n = 0; n < N; ++n)
          sums[column - k][n] = hn::MulAdd(loaded[n], weights[k][n], sums[column - k][n]);
      }
    }
  }
}

// P pixels from `pixel` on, N vectors from `channel` on. At a border the window may leave the row.
template <size_t kWidth, size_t P, size_t N, bool kBorder, typename Last>
HWY_INLINE void tile(const DepthwiseRow& g, int64_t pixel, int64_t channel, Last last) {
  const Tag d;
  V sums[P][N];
  V bias[N];
  for (size_t n = 0; n < N; ++n) bias[n] = hn::Zero(d);
  if (g.bias) load(g.bias + channel, last, bias);
  for (size_t p = 0; p < P; ++p)
    for (size_t n = 0; n < N; ++n) sums[p][n] = bias[n];
  if constexpr (P > 1 && kWidth > 0)
    add_columns<kWidth, kBorder>(g, pixel, channel, last, sums);
  else
    add_taps<kBorder>(g, pixel, channel, last, sums);
  if (g.residual) {
    for (size_t p = 0; p < P; ++p) {
      V add[N];
      load(g.residual + (pixel + static_cast<int64_t>(p)) * g.channels + channel, last, add);
      for (size_t n = 0; n < N; ++n) sums[p][n] = hn::Add(sums[p][n], add[n]);
    }
  }
  activate_tile(d, g.activation, sums);
  for (size_t p = 0; p < P; ++p) {
    float* y = g.y + (pixel + static_cast<int64_t>(p)) * g.channels + channel;
    for (size_t n = 0; n + 1 < N; ++n) hn::StoreU(sums[p][n], d, y + n * kLanes);
    last.store(sums[p][N - 1], y + (N - 1) * kLanes);
  }
}

template <size_t kWidth, size_t P, size_t N, typename Last>
HWY_INLINE void pixels(const DepthwiseRow& g, int64_t pixel, int64_t channel, Last last) {
  const int64_t first = pixel * g.width_stride - g.left;
  const int64_t end = first + (static_cast<int64_t>(P) - 1) * g.width_stride +
                      (g.kernel_width - 1) * g.width_dilation;
  if (first < 0 || end >= g.in_width)
    tile<kWidth, P, N, true>(g, pixel, channel, last);
  else
    tile<kWidth, P, N, false>(g, pixel, channel, last);
}

#if HWY_TARGET <= HWY_AVX3

template <size_t kWidth, size_t N>
HWY_NOINLINE void channel_block(const DepthwiseRow& g, int64_t channel, size_t in_last) {
  const Lanes<false> last{hn::FirstN(Tag(), std::min(in_last, kLanes))};
  int64_t pixel = 0;
  for (; pixel + 7 <= g.out_width; pixel += 7) pixels<kWidth, 7, N>(g, pixel, channel, last);
  for (; pixel + 3 <= g.out_width; pixel += 3) pixels<kWidth, 3, N>(g, pixel, channel, last);
  for (; pixel < g.out_width; ++pixel) pixels<kWidth, 1, N>(g, pixel, channel, last);
}

// A block of channels is two lines of each pixel: its weights stay in the nearest cache.
template <size_t kWidth>
void row(const DepthwiseRow& g) {
  for (int64_t channel = 0; channel < g.channels; channel += int64_t{2 * kLanes}) {
    const auto left = static_cast<size_t>(g.channels - channel);
    if (left > kLanes)
      channel_block<kWidth, 2>(g, channel, left - kLanes);
    else
      channel_block<kWidth, 1>(g, channel, left);
  }
}

#else

template <size_t kWidth, size_t P>
HWY_NOINLINE void all_channels(const DepthwiseRow& g, int64_t pixel) {
  int64_t channel = 0;
  constexpr auto lanes = static_cast<int64_t>(kLanes);
  for (; channel + lanes <= g.channels; channel += lanes)
    pixels<kWidth, P, 1>(g, pixel, channel, Lanes<true>());
  if (const auto left = static_cast<size_t>(g.channels - channel); left > 0)
    pixels<kWidth, P, 1>(g, pixel, channel, Lanes<false>{hn::FirstN(Tag(), left)});
}

// A vector is half a line: the other half follows while the line is near.
template <size_t kWidth>
void row(const DepthwiseRow& g) {
  int64_t pixel = 0;
  for (; pixel + 7 <= g.out_width; pixel += 7) all_channels<kWidth, 7>(g, pixel);
  for (; pixel + 3 <= g.out_width; pixel += 3) all_channels<kWidth, 3>(g, pixel);
  for (; pixel < g.out_width; ++pixel) all_channels<kWidth, 1>(g, pixel);
}

#endif

}  // namespace

void run_depthwise_here(const DepthwiseRow& g) {
  const bool is_dense = g.width_stride == 1 && g.width_dilation == 1;
  if (is_dense && g.kernel_width == 3) return row<3>(g);
  if (is_dense && g.kernel_width == 5) return row<5>(g);
  row<0>(g);
}

#else

void run_depthwise_here(const DepthwiseRow&) {
  fail(Code::kInternal, "[cpu] the depthwise convolution is compiled for AVX2 and AVX-512");
}

#endif

}  // namespace anymps::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anymps::cpu {

HWY_EXPORT(run_depthwise_here);

bool depthwise_is_here() {
  return ((HWY_TARGETS & HWY_AVX3) != 0 && isa() >= Isa::kAvx512) ||
         ((HWY_TARGETS & HWY_AVX2) != 0 && isa() == Isa::kAvx2);
}

void run_depthwise(const DepthwiseRow& row) { HWY_DYNAMIC_DISPATCH(run_depthwise_here)(row); }

}  // namespace anymps::cpu
#endif
