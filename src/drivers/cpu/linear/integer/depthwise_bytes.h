// SPDX-License-Identifier: Apache-2.0
// Convolutions of bytes by channel with the channels last: sums over the taps of many channels side
// by side. A block is the channels that a vector of bytes holds. Bytes of a few taps are brought
// together as words; how that mixes up the channels of a block, weights and all that is said of
// channels is mixed up too, and narrowing the results to bytes undoes it.
#pragma once

#include <cstdint>

#include "drivers/cpu/linear/int_gemm.h"

namespace anymps::cpu {

inline constexpr int64_t kLeastByteBlock = 16;  // channels
inline constexpr int64_t kMostByteTaps = 64;    // of a window, filled up to whole words

// The widest block for so many channels, of which there are at least kLeastByteBlock.
int64_t byte_block(int64_t channels);
// Where channel c of a block lies in the order of its words.
int64_t place_in_block(int64_t block, int64_t c);

// Results side by side whose taps lie on the same side of the image's border.
struct ByteSegment {
  int64_t first = 0, places = 0;
};

// Some segments of results, for one block of channels.
struct ByteTaps {
  IntPacking packing;  // words of four i8 weights, or of two of 16 bits
  int64_t block = 0;
  bool flip = false;  // x is i8: 128 is added
  const ByteSegment* segments = nullptr;
  int64_t segment_count = 0;
  // [segment_count, taps]: where each tap's pixel begins for the first place of a segment.
  const uint8_t* const* x = nullptr;
  int64_t x_step = 0;   // from place to place
  int64_t channel = 0;  // the first of the block
  int64_t words = 0;    // of a channel's taps
  // Three words that are columns of the window, from left to right: so many of them are columns of
  // the next place's window, too. -1: it is not so.
  int64_t columns_kept = -1;
  const void* weights = nullptr;  // [words, block] words, in the block's order
  // In the block's order.
  const int32_t* start = nullptr;
  const float *scale = nullptr, *bias = nullptr;  // no bias: null
  const IntTail* tail = nullptr;                  // what else becomes of the sums
  bool fits = false;                              // fits_words
  void* y = nullptr;                              // the block of the first result of all
  int64_t y_step = 0;                             // elements
};
void sum_byte_taps(const ByteTaps& taps);

}  // namespace anymps::cpu
