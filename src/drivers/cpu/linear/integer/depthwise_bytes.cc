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

  HWY_INLINE void start(const ByteTaps& p) {
    for (int64_t i = 0; i < 4; ++i) sums[i] = hn::LoadU(Words(), p.start + i * kLanes);
  }

  static HWY_INLINE hn::Vec<Bytes> load(const uint8_t* x, bool flip) {
    const auto bytes = hn::LoadU(Bytes(), x);
    return flip ? hn::Xor(bytes, hn::Set(Bytes(), 128)) : bytes;
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
    const auto first = load(x[0] + offset, flip), second = load(x[1] + offset, flip);
    const auto add_half = [&](hn::Vec<Shorts> a, hn::Vec<Shorts> b, size_t at) HWY_ATTR {
      const auto low = hn::InterleaveLower(d16, a, b), high = hn::InterleaveUpper(d16, a, b);
      sums[at] = IntPairs::add(sums[at], hn::BitCast(Words(), low), weights[at]);
      sums[at + 1] = IntPairs::add(sums[at + 1], hn::BitCast(Words(), high), weights[at + 1]);
    };
    add_half(hn::BitCast(d16, hn::InterleaveLower(d, first, zero)),
             hn::BitCast(d16, hn::InterleaveLower(d, second, zero)), 0);
    add_half(hn::BitCast(d16, hn::InterleaveUpper(d, first, zero)),
             hn::BitCast(d16, hn::InterleaveUpper(d, second, zero)), 2);
  }

#ifdef ANYMPS_INT_QUADS
  // Four bytes of each channel as words.
  struct Quads {
    hn::Vec<Words> words[4];

    HWY_INLINE void set(hn::Vec<Bytes> a, hn::Vec<Bytes> b, hn::Vec<Bytes> c, hn::Vec<Bytes> e) {
      const Bytes d;
      set_half(hn::InterleaveLower(d, a, b), hn::InterleaveLower(d, c, e), words);
      set_half(hn::InterleaveUpper(d, a, b), hn::InterleaveUpper(d, c, e), words + 2);
    }

   private:
    static HWY_INLINE void set_half(hn::Vec<Bytes> ab, hn::Vec<Bytes> ce, hn::Vec<Words>* to) {
      const Shorts d;
      const auto first = hn::BitCast(d, ab), second = hn::BitCast(d, ce);
      to[0] = hn::BitCast(Words(), hn::InterleaveLower(d, first, second));
      to[1] = hn::BitCast(Words(), hn::InterleaveUpper(d, first, second));
    }
  };

  HWY_INLINE void add_quads(const Quads& quads, const hn::Vec<Words> (&weights)[4]) {
    for (size_t i = 0; i < 4; ++i)
      sums[i] = IntQuads<false>::add(sums[i], quads.words[i], weights[i]);
  }

  HWY_INLINE void add_word(IntQuads<false>, const uint8_t* const* x, int64_t offset, bool flip,
                           const hn::Vec<Words> (&weights)[4]) {
    Quads quads;
    quads.set(load(x[0] + offset, flip), load(x[1] + offset, flip), load(x[2] + offset, flip),
              load(x[3] + offset, flip));
    add_quads(quads, weights);
  }
#endif

  HWY_INLINE hn::Vec<Floats> scaled(const ByteTaps& p, int64_t i) const {
    const Floats df;
    const auto y = hn::Mul(hn::ConvertTo(df, sums[i]), hn::LoadU(df, p.scale + i * kLanes));
    return p.bias ? hn::Add(y, hn::LoadU(df, p.bias + i * kLanes)) : y;
  }

  HWY_INLINE hn::Vec<Floats> activated(const ByteTaps& p, int64_t i) const {
    const auto x = scaled(p, i);
    if (p.tail->activation.kind == Activation::kNone) return x;
    hn::Vec<Floats> tile[1][1] = {{x}};
    activate_tile(Floats(), p.tail->activation, tile);
    return hn::IfThenElse(hn::Eq(x, x), tile[0][0], x);  // NaN stays
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
  const int64_t taps = p.words * p.packing.per_word();
  for (int64_t s = 0; s < p.segment_count; ++s)
    for (int64_t i = 0; i < p.segments[s].places; ++i) {
      block.start(p);
      for (int64_t word = 0; word < p.words; ++word) {
        hn::Vec<typename Block<kBlock>::Words> weights[4];
        Block<kBlock>::load_weights(p, word, weights);
        block.add_word(Dot(), p.x + s * taps + word * p.packing.per_word(),
                       p.channel + i * p.x_step, p.flip, weights);
      }
      results.store(block, p.segments[s].first + i);
    }
}

#ifdef ANYMPS_INT_QUADS
// The usual window, 3x3: neighbours share columns, whose words are made once.
template <size_t kBlock, int64_t kKept>
HWY_NOINLINE void sum_columns(const ByteTaps& p) {
  constexpr int64_t kColumns = 3;
  using B = Block<kBlock>;
  const ByteResults<B> results(p);
  const auto none = hn::Zero(typename B::Bytes());
  hn::Vec<typename B::Words> weights[kColumns][4];
  for (int64_t w = 0; w < kColumns; ++w) B::load_weights(p, w, weights[w]);
  for (int64_t s = 0; s < p.segment_count; ++s) {
    const uint8_t* x[kColumns][3];
    for (int64_t w = 0; w < kColumns; ++w)
      for (int64_t h = 0; h < 3; ++h) x[w][h] = p.x[(s * kColumns + w) * 4 + h] + p.channel;
    typename B::Quads quads[kColumns];
    const auto make = [&](int64_t w, int64_t offset) HWY_ATTR {
      quads[w].set(B::load(x[w][0] + offset, p.flip), B::load(x[w][1] + offset, p.flip),
                   B::load(x[w][2] + offset, p.flip), none);
    };
    for (int64_t w = 0; w < kKept; ++w) make(w, 0);
    for (int64_t i = 0; i < p.segments[s].places; ++i) {
      B block;
      block.start(p);
      for (int64_t w = kKept; w < kColumns; ++w) make(w, i * p.x_step);
      for (int64_t w = 0; w < kColumns; ++w) block.add_quads(quads[w], weights[w]);
      for (int64_t w = 0; w < kKept; ++w) quads[w] = quads[w + kColumns - kKept];
      results.store(block, p.segments[s].first + i);
    }
  }
}
#endif

template <size_t kBlock>
void sum_block(const ByteTaps& p) {
#ifdef ANYMPS_INT_QUADS
  if (p.packing.bytes && p.columns_kept == 2) return sum_columns<kBlock, 2>(p);
  if (p.packing.bytes && p.columns_kept == 1) return sum_columns<kBlock, 1>(p);
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
