// SPDX-License-Identifier: Apache-2.0
// Compiled once for each instruction set. Sums of bytes are exact: how many rows and panels go at a
// time changes no number.
#include <algorithm>
#include <bit>
#include <cstring>
#include <vector>

#include "drivers/cpu/isa.h"
#include "drivers/cpu/layers/recurrent/recurrent_bytes.h"
#include "drivers/cpu/linear/quantization_simd.h"

#define HWY_TARGET_INCLUDE "drivers/cpu/layers/recurrent/recurrent_bytes_simd.cc"
#include "drivers/cpu/all_targets.h"

#include "drivers/cpu/common/runs-inl.h"
#include "drivers/cpu/common/steps-inl.h"
#include "drivers/cpu/linear/integer/int_words-inl.h"

HWY_BEFORE_NAMESPACE();
namespace anymps::cpu::HWY_NAMESPACE {
namespace {

DynamicSteps dynamic_steps(const GateProduct& p, const float* row) {
  if (p.given) return *p.given;
  float low = 0, high = 0;
  range_with_zero(row, static_cast<size_t>(p.depth), low, high);
  return {low, high};
}

// GateProduct::dynamic without bytes: what is multiplied is what bytes would say.
void multiply_rounded(GateProduct p, const PanelRow* rows, int64_t count, int64_t first,
                      int64_t last) {
  thread_local std::vector<float> memory;      // NOLINT: kept, so that a run allocates nothing
  thread_local std::vector<PanelRow> rounded;  // NOLINT
  memory.resize(static_cast<size_t>(count * p.depth));
  rounded.assign(rows, rows + count);
  for (int64_t row = 0; row < count; ++row) {
    const DynamicSteps steps = dynamic_steps(p, rows[row].state);
    float* to = memory.data() + row * p.depth;
    for (int64_t k = 0; k < p.depth; ++k) to[k] = steps.rounded(rows[row].state[k]);
    rounded[row].state = to;
  }
  p.dynamic = false;
  multiply_panels(p, rounded.data(), count, first, last);
}

#ifdef ANYMPS_INT_QUADS

using D32 = hn::ScalableTag<int32_t>;
using I32 = hn::Vec<D32>;

constexpr auto kByteLanes = static_cast<int64_t>(hn::MaxLanes(D32()));
// Vectors of weights of a tile, for each of which and each of three bytes a sum is under way.
constexpr size_t kByteVectors = HWY_TARGET <= HWY_AVX3 ? 8 : 4;
constexpr size_t kByteRows = HWY_TARGET <= HWY_AVX3 ? 2 : 1;
constexpr int64_t kSplitParts = 3;
// Numbers are moved up by 2^23; a product is off by less than the one that is missing.
constexpr float kTop = 8388606;
// States lie between -1 and 1, but for those that layers begin with and what is not a state. Beside
// a much larger one the others would lose digits.
constexpr float kLargest = 4;

// A state as bytes: its planes are the highest, the middle and the lowest ones. Of GateProduct::
// dynamic there is one.
struct SplitRow {
  const uint8_t* planes = nullptr;
  float step = 0;       // of the lowest byte
  bool splits = false;  // else it is multiplied in f32
  int32_t zero = 0;     // dynamic: the byte that is 0
};

// `to`: kSplitParts planes of so many words.
SplitRow split(const float* from, int64_t depth, int64_t words, uint8_t* to) {
  const Tag d;
  const D32 di;
  const hn::RebindToUnsigned<D32> du;
  const hn::Rebind<uint8_t, D32> d8;
  const auto read = [&](int64_t k) HWY_ATTR {
    return k + kByteLanes <= depth ? hn::LoadU(d, from + k)
                                   : runs::load_some(d, from + k, static_cast<size_t>(depth - k));
  };
  auto most = hn::Zero(di);  // the bits of the largest: those of NaN are beyond all others
  for (int64_t k = 0; k < depth; k += kByteLanes)
    most = hn::Max(most, hn::BitCast(di, hn::Abs(read(k))));
  const auto largest = std::bit_cast<float>(hn::GetLane(hn::MaxOfLanes(di, most)));
  SplitRow row{to};
  row.splits = largest == 0 || (largest > 1e-30f && largest <= kLargest);
  if (!row.splits) return row;
  row.step = largest / kTop;
  const V inverse = hn::Set(d, largest == 0 ? 0 : kTop / largest);
  const auto byte = hn::Set(di, 255);
  const int64_t plane = words * 4;
  for (int64_t k = 0; k < depth; k += kByteLanes) {
    const I32 moved = hn::Add(nearest(d, hn::Mul(read(k), inverse)), hn::Set(di, 1 << 23));
    const auto store = [&](I32 part, int64_t at) HWY_ATTR {
      const auto bytes = hn::U8FromU32(hn::BitCast(du, hn::And(part, byte)));
      if (k + kByteLanes <= plane) return hn::StoreU(bytes, d8, to + at * plane + k);
      uint8_t some[kByteLanes];
      hn::StoreU(bytes, d8, some);
      std::memcpy(to + at * plane + k, some, static_cast<size_t>(plane - k));
    };
    store(hn::ShiftRight<16>(moved), 0);
    store(hn::ShiftRight<8>(moved), 1);
    store(moved, 2);
  }
  return row;
}

// What a sum begins with.
HWY_INLINE const float* base_of(const GateProduct& p, const float* z, int64_t panel, int64_t gate) {
  if (p.last_bias && gate + 1 == p.gates) return p.last_bias + panel * kByteLanes;
  if (p.bias) return p.bias + (panel * p.gates + gate) * kByteLanes;
  return z;
}
HWY_INLINE float* z_of(const GateProduct& p, const PanelRow& row, int64_t panel, int64_t gate) {
  return row.z + (panel * p.slots + p.first + gate) * kByteLanes;
}

template <size_t kGates, size_t kRows, size_t kPanels, int64_t kParts>
HWY_NOINLINE void byte_tile(const GateProduct& p, const PanelRow* rows, const SplitRow* split,
                            int64_t words, int64_t panel) {
  const D32 di;
  const Tag d;
  constexpr auto kWidth = static_cast<int64_t>(kGates) * kByteLanes;
  const int64_t plane = words * 4;
  I32 sums[kRows][kPanels * kGates][kParts];
  for (auto& row : sums)
    for (auto& column : row)
      for (auto& sum : column) sum = hn::Zero(di);
  const int32_t* right = p.words + panel * words * kWidth;
  for (int64_t word = 0; word < words; ++word, right += kWidth) {
    I32 left[kRows][kParts];
    for (size_t r = 0; r < kRows; ++r)
      for (int64_t part = 0; part < kParts; ++part) {
        int32_t bytes;
        std::memcpy(&bytes, split[r].planes + part * plane + word * 4, sizeof bytes);
        left[r][part] = hn::Set(di, bytes);
      }
    for (size_t n = 0; n < kPanels * kGates; ++n) {
      const auto at = static_cast<int64_t>(n / kGates) * words * kWidth +
                      static_cast<int64_t>(n % kGates) * kByteLanes;
      const I32 weights = hn::LoadU(di, right + at);
      for (size_t r = 0; r < kRows; ++r)
        for (int64_t part = 0; part < kParts; ++part)
          sums[r][n][part] = IntQuads<false>::add(sums[r][n][part], left[r][part], weights);
    }
  }
  for (size_t r = 0; r < kRows; ++r)
    for (size_t n = 0; n < kPanels * kGates; ++n) {
      const int64_t at = panel + static_cast<int64_t>(n / kGates), gate = n % kGates;
      const int64_t column = at * kWidth + gate * kByteLanes;
      const int32_t zero = kParts == 1 ? split[r].zero : 128;
      const I32 moved = hn::Mul(hn::LoadU(di, p.sums + column), hn::Set(di, zero));
      V whole = hn::ConvertTo(d, hn::Sub(sums[r][n][0], moved));
      if constexpr (kParts > 1) {
        const V middle = hn::ConvertTo(d, sums[r][n][1]), low = hn::ConvertTo(d, sums[r][n][2]);
        whole =
            hn::MulAdd(whole, hn::Set(d, 65536.0f), hn::MulAdd(middle, hn::Set(d, 256.0f), low));
      }
      const V step = hn::Mul(hn::LoadU(d, p.steps + column), hn::Set(d, split[r].step));
      float* z = z_of(p, rows[r], at, gate);
      hn::StoreU(hn::MulAdd(whole, step, hn::LoadU(d, base_of(p, z, at, gate))), d, z);
    }
}

// In f32, where there are bytes alone.
void multiply_plainly(const GateProduct& p, const PanelRow& row, int64_t words, int64_t panel) {
  const D32 di;
  const Tag d;
  const float* state = p.scaled ? row.scaled : row.state;
  for (int64_t gate = 0; gate < p.gates; ++gate) {
    float* z = z_of(p, row, panel, gate);
    const V step = hn::LoadU(d, p.steps + (panel * p.gates + gate) * kByteLanes);
    V sum = hn::LoadU(d, base_of(p, z, panel, gate));
    const int32_t* at = p.words + (panel * words * p.gates + gate) * kByteLanes;
    for (int64_t k = 0; k < p.depth; at += p.gates * kByteLanes) {
      I32 bytes = hn::LoadU(di, at);
      for (const int64_t end = std::min(p.depth, k + 4); k < end;
           ++k, bytes = hn::ShiftRight<8>(bytes)) {
        const I32 byte = hn::ShiftRight<24>(hn::ShiftLeft<24>(bytes));
        sum = hn::MulAdd(hn::Set(d, state[k]), hn::Mul(hn::ConvertTo(d, byte), step), sum);
      }
    }
    hn::StoreU(sum, d, z);
  }
}

// Panels first to last of a few rows.
template <size_t kGates, size_t kRows, size_t kPanels, int64_t kParts = kSplitParts>
HWY_INLINE void byte_tiles(const GateProduct& p, const PanelRow* rows, const SplitRow* split,
                           int64_t words, int64_t first, int64_t last) {
  constexpr auto kStep = static_cast<int64_t>(kPanels);
  for (; first + kStep <= last; first += kStep)
    byte_tile<kGates, kRows, kPanels, kParts>(p, rows, split, words, first);
  if constexpr (kPanels > 1)
    byte_tiles<kGates, kRows, kPanels / 2, kParts>(p, rows, split, words, first, last);
}

constexpr size_t panels_for(size_t gates, size_t rows) {
  size_t panels = 1;
  while (2 * panels * gates * rows <= kByteVectors) panels *= 2;
  return panels;
}

// The weights of a few panels stay in the nearest cache while all rows pass.
template <size_t kGates>
void multiply_split(const GateProduct& p, const PanelRow* rows, const SplitRow* split,
                    int64_t count, int64_t words, int64_t first, int64_t last) {
  constexpr auto kBlock = static_cast<int64_t>(panels_for(kGates, 1));
  for (; first < last; first += kBlock) {
    const int64_t end = std::min(first + kBlock, last);
    for (int64_t row = 0; row < count;) {
      if (kByteRows > 1 && row + 1 < count) {
        byte_tiles<kGates, kByteRows, panels_for(kGates, kByteRows)>(p, rows + row, split + row,
                                                                     words, first, end);
        row += kByteRows;
      } else {
        byte_tiles<kGates, 1, panels_for(kGates, 1)>(p, rows + row, split + row, words, first, end);
        ++row;
      }
    }
  }
}

void multiply_split_rows(const GateProduct& p, const PanelRow* rows, const SplitRow* split,
                         int64_t count, int64_t words, int64_t first, int64_t last) {
  const auto multiply = [&]<size_t kGates>() {
    multiply_split<kGates>(p, rows, split, count, words, first, last);
  };
  switch (p.gates) {
    case 1:
      return multiply.template operator()<1>();
    case 2:
      return multiply.template operator()<2>();
    case 3:
      return multiply.template operator()<3>();
    default:
      return multiply.template operator()<4>();
  }
}

// Rows that are not split.
void multiply_whole_rows(GateProduct p, const PanelRow* rows, int64_t count, int64_t words,
                         int64_t first, int64_t last) {
  if (p.weights) {
    p.words = nullptr;
    return multiply_panels(p, rows, count, first, last);
  }
  for (int64_t row = 0; row < count; ++row)
    for (int64_t panel = first; panel < last; ++panel) multiply_plainly(p, rows[row], words, panel);
}

// A row in steps, as bytes of so many words.
SplitRow in_steps(const GateProduct& p, const float* from, int64_t words, uint8_t* to) {
  const DynamicSteps steps = dynamic_steps(p, from);
  const ByteSteps<uint8_t> bytes(steps.scale, steps.zero);
  constexpr int64_t kBlock = 4 * kByteLanes;
  const int64_t whole = p.depth / kBlock * kBlock, rest = p.depth - whole;
  bytes.run(from, static_cast<size_t>(whole), to);
  if (rest > 0) {
    alignas(64) float tail[kBlock] = {};
    alignas(64) uint8_t tail_bytes[kBlock];
    std::copy_n(from + whole, rest, tail);
    bytes.run(tail, kBlock, tail_bytes);
    std::copy_n(tail_bytes, words * 4 - whole, to + whole);
  }
  return {to, steps.scale, true, static_cast<int32_t>(steps.zero)};
}

// Tiles of bytes in steps: of the four gates of an lstm.
constexpr int64_t kMostDynamicRows = HWY_TARGET <= HWY_AVX3 ? 6 : 3;
constexpr size_t dynamic_panels(size_t rows) {
  return rows == 1 && HWY_TARGET <= HWY_AVX3 ? 4 : rows < (HWY_TARGET <= HWY_AVX3 ? 4 : 2) ? 2 : 1;
}

template <size_t kRows = kMostDynamicRows>
void dynamic_tiles(const GateProduct& p, const PanelRow* rows, const SplitRow* split, int64_t count,
                   int64_t words, int64_t first, int64_t last) {
  if (count == kRows)
    return byte_tiles<4, kRows, dynamic_panels(kRows), 1>(p, rows, split, words, first, last);
  if constexpr (kRows > 1) dynamic_tiles<kRows - 1>(p, rows, split, count, words, first, last);
}

void multiply_dynamic_rows(const GateProduct& p, const PanelRow* rows, const SplitRow* split,
                           int64_t count, int64_t words, int64_t first, int64_t last) {
  constexpr int64_t kBlock = 4;
  for (; first < last; first += kBlock)
    for (int64_t row = 0, size = 0; row < count; row += size) {
      const int64_t left = count - row, tiles = (left + kMostDynamicRows - 1) / kMostDynamicRows;
      size = (left + tiles - 1) / tiles;
      dynamic_tiles(p, rows + row, split + row, size, words, first, std::min(first + kBlock, last));
    }
}

void multiply_bytes_here(const GateProduct& p, const PanelRow* rows, int64_t count, int64_t first,
                         int64_t last) {
  if (!p.words) return multiply_rounded(p, rows, count, first, last);
  thread_local std::vector<uint8_t> memory;    // NOLINT: kept, so that a run allocates nothing
  thread_local std::vector<SplitRow> of_rows;  // NOLINT
  const int64_t words = (p.depth + 3) / 4, bytes = kSplitParts * words * 4;
  memory.resize(static_cast<size_t>(count * bytes));
  of_rows.resize(static_cast<size_t>(count));
  if (p.dynamic) {
    for (int64_t row = 0; row < count; ++row)
      of_rows[row] = in_steps(p, rows[row].state, words, memory.data() + row * bytes);
    return multiply_dynamic_rows(p, rows, of_rows.data(), count, words, first, last);
  }
  for (int64_t row = 0; row < count; ++row)
    of_rows[row] = split(p.scaled ? rows[row].scaled : rows[row].state, p.depth, words,
                         memory.data() + row * bytes);
  for (int64_t row = 0, end = 0; row < count; row = end) {
    while (end < count && of_rows[end].splits == of_rows[row].splits) ++end;
    if (of_rows[row].splits)
      multiply_split_rows(p, rows + row, of_rows.data() + row, end - row, words, first, last);
    else
      multiply_whole_rows(p, rows + row, end - row, words, first, last);
  }
}

#else

void multiply_bytes_here(const GateProduct& p, const PanelRow* rows, int64_t count, int64_t first,
                         int64_t last) {
  multiply_rounded(p, rows, count, first, last);  // there are no words: takes_byte_weights
}

#endif

}  // namespace
}  // namespace anymps::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anymps::cpu {

HWY_EXPORT(multiply_bytes_here);

void multiply_byte_panels(const GateProduct& product, const PanelRow* rows, int64_t count,
                          int64_t first, int64_t last) {
  HWY_DYNAMIC_DISPATCH(multiply_bytes_here)(product, rows, count, first, last);
}

}  // namespace anymps::cpu
#endif
