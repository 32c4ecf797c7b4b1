// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/layers/direct/grouped_simd.h"

#include <algorithm>

#include "drivers/cpu/isa.h"

#define HWY_TARGET_INCLUDE "drivers/cpu/layers/direct/grouped_simd.cc"
#include "drivers/cpu/all_targets.h"

#include "drivers/cpu/common/activation-inl.h"

HWY_BEFORE_NAMESPACE();
namespace anymps::cpu::HWY_NAMESPACE {

#if HWY_TARGET <= HWY_AVX2

namespace {

using direct::GroupedRow;
using Mask = hn::Mask<Tag>;

constexpr int64_t kLanes = hn::MaxLanes(Tag());
constexpr size_t kPixels = HWY_TARGET <= HWY_AVX3 ? 12 : 4;  // of a tile

// The vector of results that is computed, and what it reads.
struct Vector {
  int64_t channel, in_channel;
  Mask there, read;
  const float* w;
};

// Each lane gets the c-th input of its group; `group` has the place of the first one. With kBlocks
// groups are four inputs and four results, which no permutation has to cross.
template <bool kBlocks, typename Group>
HWY_INLINE V input_of_group(V inputs, Group group, int64_t c) {
  const hn::RebindToSigned<Tag> di;
  if constexpr (kBlocks) {
    switch (c) {
      case 0:
        return hn::Broadcast<0>(inputs);
      case 1:
        return hn::Broadcast<1>(inputs);
      case 2:
        return hn::Broadcast<2>(inputs);
      default:
        return hn::Broadcast<3>(inputs);
    }
  }
  const auto places = hn::Add(group, hn::Set(di, static_cast<int32_t>(c)));
  return hn::TableLookupLanes(inputs, hn::IndicesFromVec(Tag(), places));
}

// P pixels from `pixel` on, which all see the taps from `first` to `end`.
template <size_t P, int64_t kIn, bool kBlocks>
HWY_INLINE void tile(const GroupedRow& g, const Vector& vector, int64_t pixel, int64_t first,
                     int64_t end) {
  const Tag d;
  const hn::RebindToSigned<Tag> di;
  alignas(64) int32_t place[kLanes];
  for (int64_t i = 0; i < kLanes; ++i) place[i] = static_cast<int32_t>(i / g.group_channels * kIn);
  const auto group = hn::Load(di, place);
  V sums[P][1];
  const V bias = g.bias ? hn::MaskedLoad(vector.there, d, g.bias + vector.channel) : hn::Zero(d);
  for (size_t p = 0; p < P; ++p) sums[p][0] = bias;
  const int64_t step = g.width_stride * g.in_channels;
  const int64_t column = pixel * g.width_stride - g.left + first * g.width_dilation;
  for (int64_t row = 0; row < g.rows; ++row) {
    const float* w = vector.w + row * g.w_row + first * kIn * kLanes;
    const float* x = g.x + row * g.x_row + column * g.in_channels + vector.in_channel;
    for (int64_t tap = first; tap < end; ++tap, x += g.width_dilation * g.in_channels) {
      V weights[kIn];
      for (int64_t c = 0; c < kIn; ++c, w += kLanes) weights[c] = hn::LoadU(d, w);
      for (size_t p = 0; p < P; ++p) {
        const V v = hn::MaskedLoad(vector.read, d, x + static_cast<int64_t>(p) * step);
        for (int64_t c = 0; c < kIn; ++c)
          sums[p][0] = hn::MulAdd(input_of_group<kBlocks>(v, group, c), weights[c], sums[p][0]);
      }
    }
  }
  if (g.residual)
    for (size_t p = 0; p < P; ++p)
      sums[p][0] = hn::Add(
          sums[p][0], hn::MaskedLoad(vector.there, d,
                                     g.residual + (pixel + static_cast<int64_t>(p)) * g.channels +
                                         vector.channel));
  activate_tile(d, g.activation, sums);
  for (size_t p = 0; p < P; ++p)
    hn::BlendedStore(sums[p][0], vector.there, d,
                     g.y + (pixel + static_cast<int64_t>(p)) * g.channels + vector.channel);
}

template <int64_t kIn, bool kBlocks>
HWY_NOINLINE void row_of(const GroupedRow& g) {
  const int64_t stride = g.width_stride, dilation = g.width_dilation;
  const int64_t groups = kLanes / g.group_channels, inputs = groups * kIn;
  // Pixels whose windows lie in the row.
  const int64_t reach = (g.kernel_width - 1) * dilation;
  const int64_t low = std::min(g.out_width, (g.left + stride - 1) / stride);
  const int64_t room = g.in_width - 1 - reach + g.left;
  const int64_t high = room < 0 ? low : std::clamp(room / stride + 1, low, g.out_width);
  for (int64_t i = 0; i * kLanes < g.channels; ++i) {
    Vector vector;
    vector.channel = i * kLanes;
    vector.in_channel = i * inputs;
    vector.there = hn::FirstN(Tag(), std::min(kLanes, g.channels - vector.channel));
    vector.read = hn::FirstN(Tag(), std::min(inputs, g.in_channels - vector.in_channel));
    vector.w = g.w + i * g.w_vector;
    const auto at_border = [&](int64_t pixel) HWY_ATTR {
      const int64_t place = pixel * stride - g.left;
      const int64_t first = place < 0 ? (-place + dilation - 1) / dilation : 0;
      const int64_t rest = g.in_width - place;
      const int64_t end =
          rest <= 0 ? 0 : std::min(g.kernel_width, (rest + dilation - 1) / dilation);
      tile<1, kIn, kBlocks>(g, vector, pixel, std::min(first, g.kernel_width), end);
    };
    int64_t pixel = 0;
    while (pixel < low) at_border(pixel++);
    for (; pixel + static_cast<int64_t>(kPixels) <= high; pixel += kPixels)
      tile<kPixels, kIn, kBlocks>(g, vector, pixel, 0, g.kernel_width);
    for (; pixel + 3 <= high; pixel += 3)
      tile<3, kIn, kBlocks>(g, vector, pixel, 0, g.kernel_width);
    while (pixel < g.out_width) at_border(pixel++);
  }
}

}  // namespace

void run_grouped_here(const GroupedRow& g) {
  switch (g.group_in) {
    case 1:
      return row_of<1, false>(g);
    case 2:
      return row_of<2, false>(g);
    default:
      return g.group_channels == 4 ? row_of<4, true>(g) : row_of<4, false>(g);
  }
}

#else

void run_grouped_here(const direct::GroupedRow&) {
  fail(Code::kInternal, "[cpu] grouped convolutions are compiled for AVX2 and AVX-512 only");
}

#endif

}  // namespace anymps::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anymps::cpu {

HWY_EXPORT(run_grouped_here);

namespace direct {

void run_grouped(const GroupedRow& row) { HWY_DYNAMIC_DISPATCH(run_grouped_here)(row); }

}  // namespace direct
}  // namespace anymps::cpu
#endif
