// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/layers/direct/tiles_simd.h"

#include "drivers/cpu/isa.h"

#define HWY_TARGET_INCLUDE "drivers/cpu/layers/direct/tiles_simd.cc"
#include "drivers/cpu/all_targets.h"

#include "drivers/cpu/common/activation-inl.h"

HWY_BEFORE_NAMESPACE();
namespace anymps::cpu::HWY_NAMESPACE {

#if HWY_TARGET <= HWY_AVX2

namespace {

using direct::Segment;
using direct::Tile;
using Mask = hn::Mask<Tag>;

constexpr size_t kLanes = hn::MaxLanes(Tag());
constexpr size_t kRegisters = HWY_TARGET <= HWY_AVX3 ? 32 : 16;
// Of the registers all but two or three hold sums; with few columns there are more pixels,
// so that enough sums are under way at once.
constexpr size_t kVectors = HWY_TARGET <= HWY_AVX3 ? 4 : 2;
constexpr size_t kFewPixels = HWY_TARGET <= HWY_AVX3 ? 7 : 6;
template <size_t N>
constexpr size_t kPixels = N > 2 || kFewPixels == 6 ? (N == 1 ? 10 : kFewPixels)
                           : N == 2                 ? 12
                                                    : 14;

// P pixels from `pixel` on and N vectors; of the last vector the lanes in `last` count.
template <size_t P, size_t N>
HWY_INLINE void tile(const Tile& g, int64_t pixel, Mask last) {
  const Tag d;
  // Each pixel reads again what no register is left for: else a sum would be kept in memory.
  constexpr size_t kHeld = P * N + N + 1 > kRegisters ? N - 1 : N;
  V sums[P][N];
  for (size_t n = 0; n < N; ++n) {
    const float* at = g.bias + n * kLanes;
    const V bias = !g.bias      ? hn::Zero(d)
                   : n + 1 == N ? hn::MaskedLoad(last, d, at)
                                : hn::LoadU(d, at);
    for (size_t p = 0; p < P; ++p) sums[p][n] = bias;
  }
  for (const Segment *s = g.segments, *end = s + g.count; s != end; ++s) {
    const float* HWY_RESTRICT x = s->x + pixel * g.x_step;
    const float* HWY_RESTRICT w = s->w;
    for (int64_t i = 0; i < s->depth; ++i, w += N * kLanes) {
      V right[N];
      for (size_t n = 0; n < kHeld; ++n) right[n] = hn::LoadU(d, w + n * kLanes);
      const float* again = w + kHeld * kLanes;
      for (size_t p = 0; p < P; ++p) {
        const V left = hn::Set(d, x[static_cast<int64_t>(p) * g.x_step + i]);
        for (size_t n = 0; n < kHeld; ++n) sums[p][n] = hn::MulAdd(left, right[n], sums[p][n]);
        if constexpr (kHeld < N) {
          asm("" : "+r"(again));
          sums[p][kHeld] = hn::MulAdd(left, hn::LoadU(d, again), sums[p][kHeld]);
        }
      }
    }
  }
  if (g.residual) {
    for (size_t p = 0; p < P; ++p) {
      const float* from = g.residual + (pixel + static_cast<int64_t>(p)) * g.y_step;
      for (size_t n = 0; n < N; ++n) {
        const float* at = from + n * kLanes;
        sums[p][n] =
            hn::Add(sums[p][n], n + 1 == N ? hn::MaskedLoad(last, d, at) : hn::LoadU(d, at));
      }
    }
  }
  activate_tile(d, g.activation, sums);
  for (size_t p = 0; p < P; ++p) {
    float* to = g.y + (pixel + static_cast<int64_t>(p)) * g.y_step;
    for (size_t n = 0; n + 1 < N; ++n) hn::StoreU(sums[p][n], d, to + n * kLanes);
    hn::BlendedStore(sums[p][N - 1], last, d, to + (N - 1) * kLanes);
  }
}

template <size_t N>
HWY_INLINE void few_pixels(const Tile& g, int64_t pixel, int64_t count, Mask last) {
  switch (count) {
    case 1:
      return tile<1, N>(g, pixel, last);
    case 2:
      return tile<2, N>(g, pixel, last);
    case 3:
      return tile<3, N>(g, pixel, last);
    case 4:
      return tile<4, N>(g, pixel, last);
    case 5:
      return tile<5, N>(g, pixel, last);
    case 6:
      return tile<6, N>(g, pixel, last);
    default:
      return tile<kFewPixels, N>(g, pixel, last);
  }
}

template <size_t N>
HWY_NOINLINE void panel(const Tile& g) {
  constexpr auto many = static_cast<int64_t>(kPixels<N>), few = static_cast<int64_t>(kFewPixels);
  const Mask last = hn::FirstN(Tag(), g.columns - (N - 1) * kLanes);
  int64_t pixel = 0;
  for (; pixel + many <= g.pixels; pixel += many) tile<kPixels<N>, N>(g, pixel, last);
  // What is left in parts of nearly the same size: a tile of one pixel takes as long as one of
  // four.
  int64_t rest = g.pixels - pixel;
  for (int64_t parts = (rest + few - 1) / few; parts > 0; --parts) {
    const int64_t part = (rest + parts - 1) / parts;
    few_pixels<N>(g, pixel, part, last);
    pixel += part;
    rest -= part;
  }
}

// Each lane gets the c-th element of its part of the depth.
template <int64_t kSpread>
HWY_INLINE V element_of_part(V v, int64_t c) {
  if constexpr (kSpread == 2) return c == 0 ? hn::DupEven(v) : hn::DupOdd(v);
  if constexpr (kSpread == 4) {
    switch (c) {
      case 0:
        return hn::Broadcast<0>(v);
      case 1:
        return hn::Broadcast<1>(v);
      case 2:
        return hn::Broadcast<2>(v);
      default:
        return hn::Broadcast<3>(v);
    }
  }
  const hn::RebindToSigned<Tag> di;
  const auto part = hn::And(hn::Iota(di, 0), hn::Set(di, static_cast<int32_t>(-kSpread)));
  const auto places = hn::Add(part, hn::Set(di, static_cast<int32_t>(c)));
  return hn::TableLookupLanes(v, hn::IndicesFromVec(Tag(), places));
}

// The sums of all parts, in the first of them.
template <int64_t kSpread>
HWY_INLINE V sum_of_parts(V v) {
  const hn::RebindToSigned<Tag> di;
  for (int64_t shift = kLanes / 2; shift >= kSpread; shift /= 2) {
    const auto places = hn::Xor(hn::Iota(di, 0), hn::Set(di, static_cast<int32_t>(shift)));
    v = hn::Add(v, hn::TableLookupLanes(v, hn::IndicesFromVec(Tag(), places)));
  }
  return v;
}

template <size_t P, int64_t kSpread>
HWY_INLINE void narrow_tile(const Tile& g, int64_t pixel, Mask columns) {
  const Tag d;
  constexpr auto lanes = static_cast<int64_t>(kLanes);
  V sums[P][1];
  for (size_t p = 0; p < P; ++p) sums[p][0] = hn::Zero(d);
  for (const Segment *s = g.segments, *end = s + g.count; s != end; ++s) {
    const float* HWY_RESTRICT x = s->x + pixel * g.x_step;
    const float* HWY_RESTRICT w = s->w;
    for (int64_t i = 0; i < s->depth; i += lanes) {
      const Mask there = hn::FirstN(d, std::min(lanes, s->depth - i));
      V weights[kSpread];
      for (int64_t c = 0; c < kSpread; ++c, w += kLanes) weights[c] = hn::LoadU(d, w);
      for (size_t p = 0; p < P; ++p) {
        const V v = hn::MaskedLoad(there, d, x + static_cast<int64_t>(p) * g.x_step + i);
        for (int64_t c = 0; c < kSpread; ++c)
          sums[p][0] = hn::MulAdd(element_of_part<kSpread>(v, c), weights[c], sums[p][0]);
      }
    }
  }
  const V bias = g.bias ? hn::MaskedLoad(columns, d, g.bias) : hn::Zero(d);
  for (size_t p = 0; p < P; ++p) {
    sums[p][0] = hn::Add(sum_of_parts<kSpread>(sums[p][0]), bias);
    if (g.residual)
      sums[p][0] = hn::Add(
          sums[p][0],
          hn::MaskedLoad(columns, d, g.residual + (pixel + static_cast<int64_t>(p)) * g.y_step));
  }
  activate_tile(d, g.activation, sums);
  for (size_t p = 0; p < P; ++p)
    hn::BlendedStore(sums[p][0], columns, d, g.y + (pixel + static_cast<int64_t>(p)) * g.y_step);
}

template <int64_t kSpread>
HWY_NOINLINE void narrow_panel(const Tile& g) {
  constexpr size_t many = HWY_TARGET <= HWY_AVX3 ? 8 : 4;
  const Mask columns = hn::FirstN(Tag(), g.columns);
  int64_t pixel = 0;
  for (; pixel + static_cast<int64_t>(many) <= g.pixels; pixel += many)
    narrow_tile<many, kSpread>(g, pixel, columns);
  for (; pixel < g.pixels; ++pixel) narrow_tile<1, kSpread>(g, pixel, columns);
}

}  // namespace

void run_tile_here(const Tile& g) {
  if (g.spread == 2) return narrow_panel<2>(g);
  if (g.spread == 4) return narrow_panel<4>(g);
  if (g.spread == 8) return narrow_panel<8>(g);
  switch ((g.columns + static_cast<int64_t>(kLanes) - 1) / static_cast<int64_t>(kLanes)) {
    case 1:
      return panel<1>(g);
    case 2:
      return panel<2>(g);
    case 3:
      return panel<std::min<size_t>(3, kVectors)>(g);
    default:
      return panel<kVectors>(g);
  }
}

direct::TileShape tile_shape_here() { return {kLanes, kVectors}; }

#else

void run_tile_here(const direct::Tile&) {
  fail(Code::kInternal, "[cpu] direct convolutions are compiled for AVX2 and AVX-512 only");
}

direct::TileShape tile_shape_here() { return {}; }

#endif

}  // namespace anymps::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anymps::cpu {

HWY_EXPORT(run_tile_here);
HWY_EXPORT(tile_shape_here);

namespace direct {

TileShape tile_shape() {
  isa();
  return HWY_DYNAMIC_DISPATCH(tile_shape_here)();
}

void run_tile(const Tile& tile) { HWY_DYNAMIC_DISPATCH(run_tile_here)(tile); }

}  // namespace direct
}  // namespace anymps::cpu
#endif
