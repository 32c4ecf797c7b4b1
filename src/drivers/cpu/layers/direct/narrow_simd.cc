// SPDX-License-Identifier: Apache-2.0
// Sums of some pixels and all output channels stay in registers while the window is walked through:
// each vector of the image meets all channels, and each vector of weights all pixels. Four sums at
// a time are then brought together by interleaving them.
#include "drivers/cpu/layers/direct/narrow_simd.h"

#include <algorithm>

#include "drivers/cpu/isa.h"

#define HWY_TARGET_INCLUDE "drivers/cpu/layers/direct/narrow_simd.cc"
#include "drivers/cpu/all_targets.h"

#include "drivers/cpu/common/activation-inl.h"

HWY_BEFORE_NAMESPACE();
namespace anymps::cpu::HWY_NAMESPACE {
namespace {

// Blocks of four lanes, added up.
template <class D>
HWY_INLINE auto blocks_together([[maybe_unused]] D d, hn::Vec<D> v) {
  if constexpr (hn::MaxLanes(D()) <= 4) {
    return v;
  } else {
    const hn::Half<D> half;
    return blocks_together(half, hn::Add(hn::LowerHalf(half, v), hn::UpperHalf(half, v)));
  }
}

// The sums over the lanes of four vectors.
HWY_INLINE auto four_sums(V a, V b, V c, V e) {
  const Tag d;
  const hn::RepartitionToWide<Tag> wide;
  const auto pairs = [&](V left, V right) HWY_ATTR {
    return hn::BitCast(
        wide, hn::Add(hn::InterleaveLower(d, left, right), hn::InterleaveUpper(d, left, right)));
  };
  const auto ab = pairs(a, b), ce = pairs(c, e);
  return blocks_together(d, hn::Add(hn::BitCast(d, hn::InterleaveLower(wide, ab, ce)),
                                    hn::BitCast(d, hn::InterleaveUpper(wide, ab, ce))));
}

// What `count` numbers of a line of each of P pixels, `step` apart, add to the sums. Weights of the
// next channel lie `w_step` on.
template <size_t P, size_t O>
HWY_INLINE void add_run(const float* x, int64_t step, const float* w, int64_t w_step, int64_t count,
                        V (&sums)[P][O]) {
  const Tag d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    V image[P];
    for (size_t p = 0; p < P; ++p) image[p] = hn::LoadU(d, x + static_cast<int64_t>(p) * step + i);
    for (size_t o = 0; o < O; ++o) {
      const V weights = hn::LoadU(d, w + static_cast<int64_t>(o) * w_step + i);
      for (size_t p = 0; p < P; ++p) sums[p][o] = hn::MulAdd(image[p], weights, sums[p][o]);
    }
  }
  if (i == count) return;
  const auto rest = hn::FirstN(d, static_cast<size_t>(count - i));
  V image[P];
  for (size_t p = 0; p < P; ++p)
    image[p] = hn::MaskedLoad(rest, d, x + static_cast<int64_t>(p) * step + i);
  for (size_t o = 0; o < O; ++o) {
    const V weights = hn::MaskedLoad(rest, d, w + static_cast<int64_t>(o) * w_step + i);
    for (size_t p = 0; p < P; ++p) sums[p][o] = hn::MulAdd(image[p], weights, sums[p][o]);
  }
}

// P pixels from `pixel` on, of which the taps [first, last) of a line lie in the image.
template <size_t P, size_t O>
HWY_INLINE void narrow_pixels(const NarrowRow& g, int64_t pixel, int64_t first, int64_t last) {
  const Tag d;
  V sums[P][O];
  for (size_t p = 0; p < P; ++p)
    for (size_t o = 0; o < O; ++o) sums[p][o] = hn::Zero(d);
  const int64_t step = g.width_stride * g.in_channels, w_step = g.kernel_width * g.in_channels;
  // Taps that lie side by side are one run.
  const int64_t runs = g.width_dilation == 1 ? std::min<int64_t>(last - first, 1) : last - first;
  const int64_t count = (g.width_dilation == 1 ? last - first : 1) * g.in_channels;
  for (int64_t line = 0; line < g.lines; ++line)
    for (int64_t run = 0; run < runs; ++run) {
      const int64_t column = pixel * g.width_stride - g.left + (first + run) * g.width_dilation;
      add_run<P, O>(g.x[line] + column * g.in_channels, step,
                    g.w[line] + (first + run) * g.in_channels, w_step, count, sums);
    }
  const V none = hn::Zero(d);
  for (size_t p = 0; p < P; ++p) {
    float* y = g.y + (pixel + static_cast<int64_t>(p)) * static_cast<int64_t>(O);
    for (size_t o = 0; o < O; o += 4) {
      alignas(16) float four[4];
      const hn::CappedTag<float, 4> quarter;
      hn::Store(four_sums(sums[p][o], o + 1 < O ? sums[p][std::min(o + 1, O - 1)] : none,
                          o + 2 < O ? sums[p][std::min(o + 2, O - 1)] : none,
                          o + 3 < O ? sums[p][std::min(o + 3, O - 1)] : none),
                quarter, four);
      for (size_t k = 0; k < 4 && o + k < O; ++k) y[o + k] = four[k];
    }
  }
}

template <size_t O>
HWY_NOINLINE void narrow_row(const NarrowRow& g) {
  // Registers hold the sums, a vector of each pixel and one of weights.
  constexpr size_t kRegisters = HWY_TARGET <= HWY_AVX3 ? 30 : 14;
  constexpr size_t kPixels = std::clamp<size_t>(kRegisters / (O + 1), 1, 8);
  int64_t pixel = 0;
  while (pixel < g.out_width) {
    const int64_t start = pixel * g.width_stride - g.left, d = g.width_dilation;
    const int64_t end =
        start + (static_cast<int64_t>(kPixels) - 1) * g.width_stride + (g.kernel_width - 1) * d;
    if (start >= 0 && end < g.in_width && pixel + static_cast<int64_t>(kPixels) <= g.out_width) {
      narrow_pixels<kPixels, O>(g, pixel, 0, g.kernel_width);
      pixel += kPixels;
      continue;
    }
    const int64_t first = start < 0 ? (-start + d - 1) / d : 0;
    const int64_t last = std::min(g.kernel_width, (g.in_width - start + d - 1) / d);
    narrow_pixels<1, O>(g, pixel, first, std::max(first, last));
    ++pixel;
  }
}

// Bias, residual and activation of a whole row, which is in the L1 cache.
void finish_row(const NarrowRow& g) {
  const Tag d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t count = g.out_width * g.out_channels;
  if (g.bias)
    for (int64_t i = 0; i < count; i += g.out_channels)
      for (int64_t o = 0; o < g.out_channels; ++o) g.y[i + o] += g.bias[o];
  if (g.residual)
    for (int64_t i = 0; i < count; ++i) g.y[i] += g.residual[i];
  if (g.activation.kind == Activation::kNone) return;
  for (int64_t i = 0; i < count; i += lanes) {
    const auto part = static_cast<size_t>(std::min(lanes, count - i));
    alignas(64) float buffer[hn::MaxLanes(Tag())] = {};
    std::copy_n(g.y + i, part, buffer);
    V tile[1][1] = {{hn::Load(d, buffer)}};
    if (tile_has(g.activation.kind))
      activate_tile(d, g.activation, tile);
    else
      activate_any(d, g.activation, tile);
    hn::Store(tile[0][0], d, buffer);
    std::copy_n(buffer, part, g.y + i);
  }
}

}  // namespace

void run_narrow_here(const NarrowRow& g) {
  using Row = void (*)(const NarrowRow&);
  static constexpr Row kRows[kNarrowChannels] = {narrow_row<1>, narrow_row<2>, narrow_row<3>,
                                                 narrow_row<4>, narrow_row<5>, narrow_row<6>,
                                                 narrow_row<7>, narrow_row<8>};
  kRows[g.out_channels - 1](g);
  finish_row(g);
}

}  // namespace anymps::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anymps::cpu {

HWY_EXPORT(run_narrow_here);

void run_narrow(const NarrowRow& row) { HWY_DYNAMIC_DISPATCH(run_narrow_here)(row); }

}  // namespace anymps::cpu
#endif
