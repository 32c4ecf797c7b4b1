// SPDX-License-Identifier: Apache-2.0
// Compiled once for each instruction set.
#include "drivers/cpu/linear/integer/depthwise_bytes.h"

#include <algorithm>
#include <cstring>

#include "drivers/cpu/isa.h"

#define HWY_TARGET_INCLUDE "drivers/cpu/linear/integer/depthwise_bytes.cc"
#include "drivers/cpu/all_targets.h"

#include "drivers/cpu/common/activation-inl.h"
#include "drivers/cpu/linear/integer/int_words-inl.h"

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

  static HWY_INLINE hn::Vec<Bytes> load(const uint8_t* x, bool flip) {
    const auto bytes = hn::LoadU(Bytes(), x);
    return flip ? hn::Xor(bytes, hn::Set(Bytes(), 128)) : bytes;
  }

  template <typename Dot>
  HWY_INLINE void add(const hn::Vec<Shorts> (&low)[2], const hn::Vec<Shorts> (&high)[2],
                      const hn::Vec<Words> (&weights)[4]) {
    const Shorts d;
    const auto add_to = [&](size_t i, hn::Vec<Shorts> x) HWY_ATTR {
      sums[i] = Dot::add(sums[i], hn::BitCast(Words(), x), weights[i]);
    };
    add_to(0, hn::InterleaveLower(d, low[0], low[1]));
    add_to(1, hn::InterleaveUpper(d, low[0], low[1]));
    add_to(2, hn::InterleaveLower(d, high[0], high[1]));
    add_to(3, hn::InterleaveUpper(d, high[0], high[1]));
  }

  static HWY_INLINE void load_weights(const ByteTaps& p, int64_t word,
                                      hn::Vec<Words> (&weights)[4]) {
    const auto* from = static_cast<const int32_t*>(p.weights) + word * 4 * kLanes;
    for (int64_t i = 0; i < 4; ++i) weights[i] = hn::LoadU(Words(), from + i * kLanes);
  }

  // Two taps, widened to 16 bits. All places of a tap are `offset` further.
  HWY_INLINE void add_word(IntPairs, const uint8_t* const* x, int64_t offset, bool flip,
                           const hn::Vec<Words> (&weights)[4]) {
    const Bytes d;
    const Shorts d16;
    const auto zero = hn::Zero(d);
    hn::Vec<Shorts> low[2], high[2];
    for (int64_t i = 0; i < 2; ++i) {
      const auto bytes = load(x[i] + offset, flip);
      low[i] = hn::BitCast(d16, hn::InterleaveLower(d, bytes, zero));
      high[i] = hn::BitCast(d16, hn::InterleaveUpper(d, bytes, zero));
    }
    add<IntPairs>(low, high, weights);
  }

#ifdef ANYMPS_INT_QUADS
  HWY_INLINE void add_word(IntQuads<false>, const uint8_t* const* x, int64_t offset, bool flip,
                           const hn::Vec<Words> (&weights)[4]) {
    const Bytes d;
    const Shorts d16;
    hn::Vec<Shorts> low[2], high[2];
    for (int64_t i = 0; i < 2; ++i) {
      const auto a = load(x[2 * i] + offset, flip), b = load(x[2 * i + 1] + offset, flip);
      low[i] = hn::BitCast(d16, hn::InterleaveLower(d, a, b));
      high[i] = hn::BitCast(d16, hn::InterleaveUpper(d, a, b));
    }
    add<IntQuads<false>>(low, high, weights);
  }
#endif

  HWY_INLINE hn::Vec<Floats> scaled(const ByteTaps& p, int64_t i) const {
    const Words d;
    const Floats df;
    const auto sum = hn::Add(sums[i], hn::LoadU(d, p.start + i * kLanes));
    const auto y = hn::Mul(hn::ConvertTo(df, sum), hn::LoadU(df, p.scale + i * kLanes));
    return p.bias ? hn::Add(y, hn::LoadU(df, p.bias + i * kLanes)) : y;
  }

  HWY_INLINE hn::Vec<Floats> activated(const ByteTaps& p, int64_t i) const {
    hn::Vec<Floats> tile[1][1] = {{scaled(p, i)}};
    if (p.tail->activation.kind != Activation::kNone)
      activate_tile(Floats(), p.tail->activation, tile);
    return tile[0][0];
  }

  // As finish_row of int_gemm.cc rounds: NaN is 0.
  HWY_INLINE hn::Vec<Words> rounded_safely(const ByteTaps& p, int64_t i) const {
    const Floats df;
    const float low = p.tail->out == DType::kI8 ? -128 : 0;
    const auto step = hn::Add(hn::Round(activated(p, i)), hn::Set(df, p.tail->zero));
    const auto inside = hn::Min(hn::Max(step, hn::Set(df, low)), hn::Set(df, low + 255));
    return hn::ConvertTo(Words(), hn::IfThenElseZero(hn::Eq(step, step), inside));
  }

  // Of the four numbers of a word's channel one byte each, then in the channels' order.
  static HWY_INLINE void store_bytes(hn::Vec<Words> a, hn::Vec<Words> b, hn::Vec<Words> c,
                                     hn::Vec<Words> e, uint8_t* y) {
    const Bytes d;
    const auto byte = hn::Set(Words(), 255);
    const auto low = hn::Or(hn::And(a, byte), hn::ShiftLeft<8>(hn::And(b, byte)));
    const auto high = hn::Or(hn::ShiftLeft<16>(hn::And(c, byte)), hn::ShiftLeft<24>(e));
    alignas(16) static constexpr uint8_t kTurned[16] = {0, 4, 8,  12, 1, 5, 9,  13,
                                                        2, 6, 10, 14, 3, 7, 11, 15};
    const auto order = hn::LoadDup128(d, kTurned);
    hn::StoreU(hn::TableLookupBytes(hn::BitCast(d, hn::Or(low, high)), order), d, y);
  }

  // Four neighbours at a time lie together.
  HWY_INLINE void store_floats(const ByteTaps& p, float* y) const {
    float words[kBlock];
    for (int64_t i = 0; i < 4; ++i) hn::StoreU(activated(p, i), Floats(), words + i * kLanes);
    for (int64_t i = 0; i < 4; ++i)
      for (int64_t j = 0; j < kLanes; j += 4)
        std::memcpy(y + 4 * j + 4 * i, words + i * kLanes + j, 4 * sizeof(float));
  }
};

// What becomes of the sums of a place.
template <class Block>
class ByteResults {
 public:
  explicit ByteResults(const ByteTaps& p)
      : p_(p),
        rounded_(*p.tail),
        direct_(p.fits && p.tail->activation.kind <= Activation::kClamp) {}

  HWY_INLINE void store(const Block& block, int64_t place) const {
    const int64_t at = place * p_.y_step;
    auto* y = static_cast<uint8_t*>(p_.y) + at;
    if (p_.tail->out == DType::kF32)
      block.store_floats(p_, static_cast<float*>(p_.y) + at);
    else if (direct_)
      hn::StoreU(rounded_(block.scaled(p_, 0), block.scaled(p_, 1), block.scaled(p_, 2),
                          block.scaled(p_, 3)),
                 typename Block::Bytes(), y);
    else
      Block::store_bytes(block.rounded_safely(p_, 0), block.rounded_safely(p_, 1),
                         block.rounded_safely(p_, 2), block.rounded_safely(p_, 3), y);
  }

 private:
  const ByteTaps& p_;
  const RoundedBytes<typename Block::Floats> rounded_;
  const bool direct_;
};

template <class Dot, size_t kBlock>
HWY_NOINLINE void sum_any(const ByteTaps& p) {
  Block<kBlock> block;
  const ByteResults<Block<kBlock>> results(p);
  for (int64_t place = 0; place < p.places; ++place) {
    block.clear();
    for (int64_t word = 0; word < p.words; ++word) {
      hn::Vec<typename Block<kBlock>::Words> weights[4];
      Block<kBlock>::load_weights(p, word, weights);
      block.add_word(Dot(), p.x + word * p.packing.per_word(), place * p.x_step, p.flip, weights);
    }
    results.store(block, place);
  }
}

#ifdef ANYMPS_INT_QUADS
// The usual window: nine taps, whose weights stay in registers where there are enough.
template <size_t kBlock>
HWY_NOINLINE void sum_three_quads(const ByteTaps& p) {
  constexpr int64_t kWords = 3;
  Block<kBlock> block;
  const ByteResults<Block<kBlock>> results(p);
  hn::Vec<typename Block<kBlock>::Words> weights[kWords][4];
  const uint8_t* x[4 * kWords];
  std::copy_n(p.x, 4 * kWords, x);
  for (int64_t word = 0; word < kWords; ++word) Block<kBlock>::load_weights(p, word, weights[word]);
  for (int64_t place = 0; place < p.places; ++place) {
    block.clear();
    for (int64_t word = 0; word < kWords; ++word)
      block.add_word(IntQuads<false>(), x + 4 * word, place * p.x_step, false, weights[word]);
    results.store(block, place);
  }
}
#endif

template <size_t kBlock>
void sum_block(const ByteTaps& p) {
#ifdef ANYMPS_INT_QUADS
  if (p.packing.bytes && p.words == 3 && !p.flip) return sum_three_quads<kBlock>(p);
  if (p.packing.bytes) return sum_any<IntQuads<false>, kBlock>(p);
#endif
  sum_any<IntPairs, kBlock>(p);
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
