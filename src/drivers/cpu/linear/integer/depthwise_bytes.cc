// SPDX-License-Identifier: Apache-2.0
// Compiled once for each instruction set.
#include "drivers/cpu/linear/integer/depthwise_bytes.h"

#include <algorithm>
#include <cstring>

#include "drivers/cpu/isa.h"

#define HWY_TARGET_INCLUDE "drivers/cpu/linear/integer/depthwise_bytes.cc"
#include "drivers/cpu/all_targets.h"

#include "drivers/cpu/common/activation-inl.h"
#include "drivers/cpu/common/int_dot-inl.h"

HWY_BEFORE_NAMESPACE();
namespace anymps::cpu::HWY_NAMESPACE {
namespace {

// Of a block of kBlock channels: bytes, and their words in four vectors.
template <size_t kBlock>
struct Block {
  using Bytes = hn::CappedTag<uint8_t, kBlock>;
  using Shorts = hn::Repartition<uint16_t, Bytes>;
  using Words = hn::Repartition<int32_t, Bytes>;
  using Floats = hn::Repartition<float, Bytes>;
  static constexpr auto kLanes = static_cast<int64_t>(kBlock / 4);

  hn::Vec<Words> sums[4];

  HWY_INLINE void clear() {
    for (auto& sum : sums) sum = hn::Zero(Words());
  }

  static HWY_INLINE hn::Vec<Bytes> load(const ByteTaps& p, int64_t tap, int64_t place) {
    const auto x = hn::LoadU(Bytes(), p.x[tap] + place * p.x_step);
    return p.flip ? hn::Xor(x, hn::Set(Bytes(), 128)) : x;
  }

  template <typename Dot>
  HWY_INLINE void add(const hn::Vec<Shorts> (&low)[2], const hn::Vec<Shorts> (&high)[2],
                      const int32_t* weights) {
    const Shorts d;
    const Words d32;
    const auto add_to = [&](size_t i, hn::Vec<Shorts> x) HWY_ATTR {
      const auto w = hn::LoadU(d32, weights + static_cast<int64_t>(i) * kLanes);
      sums[i] = Dot::add(sums[i], hn::BitCast(d32, x), w);
    };
    add_to(0, hn::InterleaveLower(d, low[0], low[1]));
    add_to(1, hn::InterleaveUpper(d, low[0], low[1]));
    add_to(2, hn::InterleaveLower(d, high[0], high[1]));
    add_to(3, hn::InterleaveUpper(d, high[0], high[1]));
  }

  // Two taps, widened to 16 bits.
  HWY_INLINE void add_pair(const ByteTaps& p, int64_t word, int64_t place) {
    const Bytes d;
    const Shorts d16;
    const auto zero = hn::Zero(d);
    hn::Vec<Shorts> low[2], high[2];
    for (int64_t i = 0; i < 2; ++i) {
      const auto x = load(p, 2 * word + i, place);
      low[i] = hn::BitCast(d16, hn::InterleaveLower(d, x, zero));
      high[i] = hn::BitCast(d16, hn::InterleaveUpper(d, x, zero));
    }
    add<IntPairs>(low, high, static_cast<const int32_t*>(p.weights) + word * 4 * kLanes);
  }

#ifdef ANYMPS_INT_QUADS
  HWY_INLINE void add_quad(const ByteTaps& p, int64_t word, int64_t place) {
    const Bytes d;
    const Shorts d16;
    hn::Vec<Shorts> low[2], high[2];
    for (int64_t i = 0; i < 2; ++i) {
      const auto a = load(p, 4 * word + 2 * i, place), b = load(p, 4 * word + 2 * i + 1, place);
      low[i] = hn::BitCast(d16, hn::InterleaveLower(d, a, b));
      high[i] = hn::BitCast(d16, hn::InterleaveUpper(d, a, b));
    }
    add<IntQuads<false>>(low, high, static_cast<const int32_t*>(p.weights) + word * 4 * kLanes);
  }
#endif

  HWY_INLINE hn::Vec<Floats> scaled(const ByteTaps& p, int64_t i) const {
    const Words d;
    const Floats df;
    const auto sum = hn::Add(sums[i], hn::LoadU(d, p.start + i * kLanes));
    auto y = hn::Mul(hn::ConvertTo(df, sum), hn::LoadU(df, p.scale + i * kLanes));
    if (p.bias) y = hn::Add(y, hn::LoadU(df, p.bias + i * kLanes));
    if (p.tail->activation.kind != Activation::kNone) {
      hn::Vec<Floats> tile[1][1] = {{y}};
      activate_tile(df, p.tail->activation, tile);
      y = tile[0][0];
    }
    return y;
  }

  // As finish_row of int_gemm.cc rounds.
  HWY_INLINE hn::Vec<Words> rounded(const ByteTaps& p, int64_t i, float low) const {
    const Floats df;
    const auto step = hn::Add(hn::Round(scaled(p, i)), hn::Set(df, p.tail->zero));
    const auto inside = hn::Min(hn::Max(step, hn::Set(df, low)), hn::Set(df, low + 255));
    return hn::ConvertTo(Words(), hn::IfThenElseZero(hn::Eq(step, step), inside));
  }

  // Of the four numbers of a word's channel one byte each, then in the channels' order.
  HWY_INLINE void store_bytes(const ByteTaps& p, float low, uint8_t* y) const {
    const Bytes d;
    const Words d32;
    const auto byte = hn::Set(d32, 255);
    const auto first = hn::And(rounded(p, 0, low), byte);
    const auto second = hn::ShiftLeft<8>(hn::And(rounded(p, 1, low), byte));
    const auto third = hn::ShiftLeft<16>(hn::And(rounded(p, 2, low), byte));
    const auto fourth = hn::ShiftLeft<24>(rounded(p, 3, low));
    const auto words = hn::Or(hn::Or(first, second), hn::Or(third, fourth));
    alignas(16) static constexpr uint8_t kTurned[16] = {0, 4, 8,  12, 1, 5, 9,  13,
                                                        2, 6, 10, 14, 3, 7, 11, 15};
    const auto order = hn::LoadDup128(d, kTurned);
    hn::StoreU(hn::TableLookupBytes(hn::BitCast(d, words), order), d, y);
  }

  // Four neighbours at a time lie together.
  HWY_INLINE void store_floats(const ByteTaps& p, float* y) const {
    float words[kBlock];
    for (int64_t i = 0; i < 4; ++i) hn::StoreU(scaled(p, i), Floats(), words + i * kLanes);
    for (int64_t i = 0; i < 4; ++i)
      for (int64_t j = 0; j < kLanes; j += 4)
        std::memcpy(y + 4 * j + 4 * i, words + i * kLanes + j, 4 * sizeof(float));
  }

  HWY_INLINE void store(const ByteTaps& p, int64_t place) const {
    const int64_t at = place * p.y_step;
    if (p.tail->out == DType::kF32)
      store_floats(p, static_cast<float*>(p.y) + at);
    else
      store_bytes(p, p.tail->out == DType::kI8 ? -128 : 0, static_cast<uint8_t*>(p.y) + at);
  }
};

template <size_t kBlock>
HWY_NOINLINE void sum_block(const ByteTaps& p) {
  Block<kBlock> block;
#ifdef ANYMPS_INT_QUADS
  if (p.packing.bytes) {
    for (int64_t place = 0; place < p.places; ++place) {
      block.clear();
      for (int64_t word = 0; word < p.words; ++word) block.add_quad(p, word, place);
      block.store(p, place);
    }
    return;
  }
#endif
  for (int64_t place = 0; place < p.places; ++place) {
    block.clear();
    for (int64_t word = 0; word < p.words; ++word) block.add_pair(p, word, place);
    block.store(p, place);
  }
}

constexpr auto kWidest = static_cast<int64_t>(hn::MaxLanes(hn::CappedTag<uint8_t, 64>()));

int64_t widest_here() { return kWidest; }

void sum_byte_taps_here(const ByteTaps& p) {
#if HWY_TARGET <= HWY_AVX3
  if (p.block == 64) return sum_block<64>(p);
#endif
#if HWY_TARGET <= HWY_AVX2
  if (p.block == 32) return sum_block<32>(p);
#endif
  sum_block<16>(p);
}

}  // namespace
}  // namespace anymps::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anymps::cpu {

HWY_EXPORT(sum_byte_taps_here);
HWY_EXPORT(widest_here);

int64_t byte_block(int64_t channels) {
  isa();
  int64_t block = HWY_DYNAMIC_DISPATCH(widest_here)();
  while (block > kLeastByteBlock && block > channels) block /= 2;
  return block;
}

int64_t place_in_block(int64_t block, int64_t c) {
  return c % 16 / 4 * (block / 4) + c / 16 * 4 + c % 4;
}

void sum_byte_taps(const ByteTaps& taps) { HWY_DYNAMIC_DISPATCH(sum_byte_taps_here)(taps); }

}  // namespace anymps::cpu
#endif
