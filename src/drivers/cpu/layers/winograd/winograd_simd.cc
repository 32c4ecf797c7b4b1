// SPDX-License-Identifier: Apache-2.0
// The maps of Winograd's method evaluate polynomials at 0, 5/8, -5/8, 3/2, -3/2 and infinity (an
// edge of 4) or at 0, 1, -1 and infinity (of 2). Points that come in pairs share their even and odd
// parts, and these have the least rounding errors of those that were tried: about twice those of a
// direct sum, half of what the usual 0, 1, -1, 2, -2 give. All factors are exact in f32, but for
// those of the weights.
#include "drivers/cpu/layers/winograd/winograd_simd.h"

#include <algorithm>
#include <type_traits>

#include "drivers/cpu/isa.h"

#define ANYMPS_AVX512_ONLY
#define HWY_TARGET_INCLUDE "drivers/cpu/layers/winograd/winograd_simd.cc"
#include "drivers/cpu/all_targets.h"

#include "drivers/cpu/common/activation-inl.h"

HWY_BEFORE_NAMESPACE();
namespace anymps::cpu::HWY_NAMESPACE {

#if HWY_TARGET <= HWY_AVX2

namespace {

using Mask = hn::Mask<Tag>;
constexpr int64_t kLanes = HWY_TARGET <= HWY_AVX3 ? 16 : 8;
constexpr int64_t kMostEdge = 4, kMostSide = 6;

template <int64_t kEdge>
struct Maps;

template <>
struct Maps<4> {
  static constexpr double kA = 0.625, kB = 1.5;  // the points besides 0 and infinity
  static constexpr double kA2 = kA * kA, kB2 = kB * kB;

  template <typename D, typename T>
  static HWY_INLINE void weights(D d, const T* w, T* to) {
    const double a = 1 / (2 * kA2 * (kA2 - kB2)), b = 1 / (2 * kB2 * (kB2 - kA2));
    const T even_a = hn::Mul(hn::MulAdd(hn::Set(d, kA2), w[2], w[0]), hn::Set(d, a));
    const T even_b = hn::Mul(hn::MulAdd(hn::Set(d, kB2), w[2], w[0]), hn::Set(d, b));
    const T odd_a = hn::Mul(w[1], hn::Set(d, a * kA)), odd_b = hn::Mul(w[1], hn::Set(d, b * kB));
    to[0] = hn::Mul(w[0], hn::Set(d, 1 / (kA2 * kB2)));
    to[1] = hn::Add(even_a, odd_a);
    to[2] = hn::Sub(even_a, odd_a);
    to[3] = hn::Add(even_b, odd_b);
    to[4] = hn::Sub(even_b, odd_b);
    to[5] = w[2];
  }

  static HWY_INLINE void input(const V* x, V* to) {
    const Tag d;
    const V a = hn::Set(d, kA), b = hn::Set(d, kB);
    const V a2 = hn::Set(d, kA2), b2 = hn::Set(d, kB2);
    const V sum = hn::Set(d, kA2 + kB2), product = hn::Set(d, kA2 * kB2);
    const V even_a = hn::NegMulAdd(b2, x[2], x[4]), odd_a = hn::NegMulAdd(b2, x[1], x[3]);
    const V even_b = hn::NegMulAdd(a2, x[2], x[4]), odd_b = hn::NegMulAdd(a2, x[1], x[3]);
    to[0] = hn::MulAdd(product, x[0], hn::NegMulAdd(sum, x[2], x[4]));
    to[1] = hn::MulAdd(a, odd_a, even_a);
    to[2] = hn::NegMulAdd(a, odd_a, even_a);
    to[3] = hn::MulAdd(b, odd_b, even_b);
    to[4] = hn::NegMulAdd(b, odd_b, even_b);
    to[5] = hn::MulAdd(product, x[1], hn::NegMulAdd(sum, x[3], x[5]));
  }

  static HWY_INLINE void output(const V* m, V* to) {
    const Tag d;
    const V even_a = hn::Add(m[1], m[2]), odd_a = hn::Sub(m[1], m[2]);
    const V even_b = hn::Add(m[3], m[4]), odd_b = hn::Sub(m[3], m[4]);
    to[0] = hn::Add(m[0], hn::Add(even_a, even_b));
    to[1] = hn::MulAdd(hn::Set(d, kA), odd_a, hn::Mul(hn::Set(d, kB), odd_b));
    to[2] = hn::MulAdd(hn::Set(d, kA2), even_a, hn::Mul(hn::Set(d, kB2), even_b));
    to[3] = hn::MulAdd(hn::Set(d, kA2 * kA), odd_a, hn::MulAdd(hn::Set(d, kB2 * kB), odd_b, m[5]));
  }
};

template <>
struct Maps<2> {
  template <typename D, typename T>
  static HWY_INLINE void weights(D d, const T* w, T* to) {
    const T half = hn::Set(d, 0.5);
    const T even = hn::Mul(half, hn::Add(w[0], w[2])), odd = hn::Mul(half, w[1]);
    to[0] = w[0];
    to[1] = hn::Add(even, odd);
    to[2] = hn::Sub(even, odd);
    to[3] = w[2];
  }

  static HWY_INLINE void input(const V* x, V* to) {
    to[0] = hn::Sub(x[0], x[2]);
    to[1] = hn::Add(x[2], x[1]);
    to[2] = hn::Sub(x[2], x[1]);
    to[3] = hn::Sub(x[3], x[1]);
  }

  static HWY_INLINE void output(const V* m, V* to) {
    to[0] = hn::Add(m[0], hn::Add(m[1], m[2]));
    to[1] = hn::Add(hn::Sub(m[1], m[2]), m[3]);
  }
};

// In the numbers of D.
template <int64_t kEdge, typename D>
HWY_NOINLINE void weights(D d, const WinogradTaps& taps, int64_t channels, int64_t width, float* to,
                          int64_t plane) {
  constexpr int64_t kSide = kEdge + 2;
  const hn::Rebind<float, D> df;
  using Number = hn::Vec<D>;
  const auto load = [&](const float* at) {
    if constexpr (std::is_same_v<hn::TFromD<D>, float>)
      return hn::LoadU(d, at);
    else
      return hn::PromoteTo(d, hn::LoadU(df, at));
  };
  const auto store = [&](Number number, float* at) {
    if constexpr (std::is_same_v<hn::TFromD<D>, float>)
      hn::StoreU(number, d, at);
    else
      hn::StoreU(hn::DemoteTo(df, number), df, at);
  };
  for (int64_t channel = 0; channel < channels; ++channel, to += width)
    for (int64_t at = 0; at < width; at += static_cast<int64_t>(hn::Lanes(d))) {
      const float* const from = taps.from + channel * taps.channel + at;
      Number columns[3][kSide];
      for (int64_t j = 0; j < 3; ++j) {
        Number column[3];
        for (int64_t i = 0; i < 3; ++i) column[i] = load(from + (3 * i + j) * taps.tap);
        Maps<kEdge>::weights(d, column, columns[j]);
      }
      for (int64_t i = 0; i < kSide; ++i) {
        const Number column[3] = {columns[0][i], columns[1][i], columns[2][i]};
        Number row[kSide];
        Maps<kEdge>::weights(d, column, row);
        for (int64_t j = 0; j < kSide; ++j) store(row[j], to + (i * kSide + j) * plane + at);
      }
    }
}

// One vector of channels of a tile; of the last one the lanes in `mask` count.
template <int64_t kEdge, bool kWhole>
HWY_INLINE void input_vector(const float* const (&from)[kMostSide * kMostSide], int64_t channel,
                             Mask mask, float* to, int64_t plane) {
  constexpr int64_t kSide = kEdge + 2;
  const Tag d;
  V columns[kSide][kSide];
  for (int64_t j = 0; j < kSide; ++j) {
    V x[kSide];
    for (int64_t i = 0; i < kSide; ++i) {
      const float* at = from[i * kSide + j] + channel;
      x[i] = kWhole ? hn::LoadU(d, at) : hn::MaskedLoad(mask, d, at);
    }
    Maps<kEdge>::input(x, columns[j]);
  }
  for (int64_t i = 0; i < kSide; ++i) {
    V x[kSide], row[kSide];
    for (int64_t j = 0; j < kSide; ++j) x[j] = columns[j][i];
    Maps<kEdge>::input(x, row);
    for (int64_t j = 0; j < kSide; ++j)
      hn::StoreU(row[j], d, to + (i * kSide + j) * plane + channel);
  }
}

template <int64_t kEdge>
HWY_NOINLINE void input(const WinogradTiles& t, int64_t first, int64_t count,
                        const WinogradInput& in) {
  constexpr int64_t kSide = kEdge + 2;
  const int64_t whole = t.in_channels / kLanes * kLanes;
  const Mask rest = hn::FirstN(Tag(), static_cast<size_t>(t.in_channels - whole));
  for (int64_t tile = 0; tile < count; ++tile) {
    const WinogradPlace place = place_of(t, first + tile);
    const int64_t top = place.row - t.top, left = place.column - t.left;
    const float* from[kMostSide * kMostSide];
    for (int64_t i = 0; i < kSide; ++i) {
      const bool there = top + i >= 0 && top + i < t.height;
      const int64_t row = (place.image * t.height + top + i) * t.width;
      for (int64_t j = 0; j < kSide; ++j)
        from[i * kSide + j] = there && left + j >= 0 && left + j < t.width
                                  ? in.x + (row + left + j) * t.in_channels
                                  : in.zeros;
    }
    float* to = in.to + tile * in.row;
    for (int64_t channel = 0; channel < whole; channel += kLanes)
      input_vector<kEdge, true>(from, channel, rest, to, in.plane);
    if (whole < t.in_channels) input_vector<kEdge, false>(from, whole, rest, to, in.plane);
  }
}

// Adds, activates and stores what of a tile's row is in the image.
template <int64_t kEdge>
HWY_INLINE void store_row(const WinogradTiles& t, const WinogradOutput& g, int64_t at,
                          int64_t pixels, Mask mask, V bias, V (&sums)[1][kEdge]) {
  const Tag d;
  for (int64_t j = 0; j < kEdge; ++j) sums[0][j] = hn::Add(sums[0][j], bias);
  if (g.residual) {
    for (int64_t j = 0; j < kEdge; ++j)
      if (j < pixels)
        sums[0][j] =
            hn::Add(sums[0][j], hn::MaskedLoad(mask, d, g.residual + at + j * t.out_channels));
  }
  if (tile_has(g.activation.kind))
    activate_tile(d, g.activation, sums);
  else
    activate_apart(d, g.activation, sums[0], kEdge);
  for (int64_t j = 0; j < kEdge; ++j)
    if (j < pixels) hn::BlendedStore(sums[0][j], mask, d, g.y + at + j * t.out_channels);
}

// Where a tile's row lies in y.
HWY_INLINE int64_t offset_of(const WinogradTiles& t, const WinogradPlace& place, int64_t row) {
  return ((place.image * t.out_height + place.row + row) * t.out_width + place.column) *
         t.out_channels;
}

HWY_INLINE Mask mask_at(const WinogradOutput& g, int64_t column) {
  return hn::FirstN(Tag(), static_cast<size_t>(std::min(kLanes, g.columns - column)));
}

template <int64_t kEdge>
HWY_NOINLINE void output(const WinogradTiles& t, int64_t first, int64_t count,
                         const WinogradOutput& g, bool* broken) {
  constexpr int64_t kSide = kEdge + 2;
  const Tag d;
  const V zero = hn::Zero(d);
  for (int64_t tile = 0; tile < count; ++tile) {
    const WinogradPlace place = place_of(t, first + tile);
    V check = zero;
    for (int64_t column = 0; column < g.columns; column += kLanes) {
      const Mask mask = mask_at(g, column);
      const V bias = g.bias ? hn::MaskedLoad(mask, d, g.bias + column) : zero;
      const float* from = g.from + tile * g.row + column;
      V columns[kSide][kEdge];
      for (int64_t j = 0; j < kSide; ++j) {
        V m[kSide];
        for (int64_t i = 0; i < kSide; ++i) m[i] = hn::LoadU(d, from + (i * kSide + j) * g.plane);
        Maps<kEdge>::output(m, columns[j]);
      }
      for (int64_t i = 0; i < kEdge; ++i) {
        V m[kSide], sums[1][kEdge];
        for (int64_t j = 0; j < kSide; ++j) m[j] = columns[j][i];
        Maps<kEdge>::output(m, sums[0]);
        for (int64_t j = 0; j < kEdge; ++j) check = hn::MulAdd(sums[0][j], zero, check);
        if (i < place.rows)
          store_row<kEdge>(t, g, offset_of(t, place, i) + column, place.columns, mask, bias, sums);
      }
    }
    if (!hn::AllFalse(d, hn::IsNaN(check))) broken[tile] = true;
  }
}

template <int64_t kEdge>
HWY_NOINLINE void store(const WinogradTiles& t, int64_t tile, const WinogradOutput& g,
                        const float* from) {
  const Tag d;
  const WinogradPlace place = place_of(t, tile);
  for (int64_t column = 0; column < g.columns; column += kLanes) {
    const Mask mask = mask_at(g, column);
    const V bias = g.bias ? hn::MaskedLoad(mask, d, g.bias + column) : hn::Zero(d);
    for (int64_t i = 0; i < place.rows; ++i) {
      V sums[1][kEdge];
      for (int64_t j = 0; j < kEdge; ++j)
        sums[0][j] = hn::LoadU(d, from + (i * kEdge + j) * g.row + column);
      store_row<kEdge>(t, g, offset_of(t, place, i) + column, place.columns, mask, bias, sums);
    }
  }
}

}  // namespace

void winograd_weights_here(const WinogradTiles& t, const WinogradTaps& taps, int64_t channels,
                           int64_t width, float* to, int64_t plane) {
  const auto go = [&](auto d) {
    using D = decltype(d);
    (t.edge == kMostEdge ? weights<4, D> : weights<2, D>)(d, taps, channels, width, to, plane);
  };
  if (t.late)
    go(Tag());
  else
    go(hn::ScalableTag<double>());
}

void winograd_input_here(const WinogradTiles& tiles, int64_t first, int64_t count,
                         const WinogradInput& in) {
  (tiles.edge == kMostEdge ? input<4> : input<2>)(tiles, first, count, in);
}

void winograd_output_here(const WinogradTiles& tiles, int64_t first, int64_t count,
                          const WinogradOutput& out, bool* broken) {
  (tiles.edge == kMostEdge ? output<4> : output<2>)(tiles, first, count, out, broken);
}

void winograd_store_here(const WinogradTiles& tiles, int64_t tile, const WinogradOutput& out,
                         const float* sums) {
  (tiles.edge == kMostEdge ? store<4> : store<2>)(tiles, tile, out, sums);
}

#else

namespace {

[[noreturn]] void not_here() {
  fail(Code::kInternal, "[cpu] Winograd's method is compiled for AVX2 and AVX-512");
}

}  // namespace

void winograd_weights_here(const WinogradTiles&, const WinogradTaps&, int64_t, int64_t, float*,
                           int64_t) {
  not_here();
}
void winograd_input_here(const WinogradTiles&, int64_t, int64_t, const WinogradInput&) {
  not_here();
}
void winograd_output_here(const WinogradTiles&, int64_t, int64_t, const WinogradOutput&, bool*) {
  not_here();
}
void winograd_store_here(const WinogradTiles&, int64_t, const WinogradOutput&, const float*) {
  not_here();
}

#endif

}  // namespace anymps::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anymps::cpu {

HWY_EXPORT(winograd_weights_here);
HWY_EXPORT(winograd_input_here);
HWY_EXPORT(winograd_output_here);
HWY_EXPORT(winograd_store_here);

void winograd_weights(const WinogradTiles& tiles, const WinogradTaps& taps, int64_t channels,
                      int64_t width, float* to, int64_t plane) {
  HWY_DYNAMIC_DISPATCH(winograd_weights_here)(tiles, taps, channels, width, to, plane);
}

void winograd_input(const WinogradTiles& tiles, int64_t first, int64_t count,
                    const WinogradInput& input) {
  HWY_DYNAMIC_DISPATCH(winograd_input_here)(tiles, first, count, input);
}

void winograd_output(const WinogradTiles& tiles, int64_t first, int64_t count,
                     const WinogradOutput& output, bool* broken) {
  HWY_DYNAMIC_DISPATCH(winograd_output_here)(tiles, first, count, output, broken);
}

void winograd_store(const WinogradTiles& tiles, int64_t tile, const WinogradOutput& output,
                    const float* sums) {
  HWY_DYNAMIC_DISPATCH(winograd_store_here)(tiles, tile, output, sums);
}

}  // namespace anymps::cpu
#endif
