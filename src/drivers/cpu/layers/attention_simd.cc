// SPDX-License-Identifier: Apache-2.0
// Attention over blocks of keys that stay in the cache: scores of a few queries, a running softmax,
// and their product with the values, so that the matrix of scores never exists. Compiled once for
// each instruction set.
#include "drivers/cpu/layers/attention_simd.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "drivers/cpu/isa.h"

#define HWY_TARGET_INCLUDE "drivers/cpu/layers/attention_simd.cc"
#include "drivers/cpu/all_targets.h"

#include "drivers/cpu/layers/attention-inl.h"

#ifndef ANYMPS_ATTENTION_SIMD_ONCE
#define ANYMPS_ATTENTION_SIMD_ONCE
namespace anymps::cpu {

constexpr int64_t kKeyBlock = 256;
constexpr int64_t kRows = 6;    // queries of a tile
constexpr int64_t kRound = 16;  // floats to which buffers are rounded up: the widest vector

inline int64_t round_up(int64_t value) { return (value + kRound - 1) / kRound * kRound; }

// The scratch memory of a task, in floats.
struct AttentionBuffers {
  AttentionBuffers(int64_t queries, int64_t keys, int64_t depth, int64_t width) {
    block = round_up(std::min(keys, kKeyBlock));
    columns = round_up(width);
    values = depth * block;
    scores = values + block * columns;
    tile = scores + kRows * block;
    most = tile + kRows * columns;
    sum = most + round_up(queries);
    total = sum + round_up(queries);
  }
  int64_t block, columns;  // keys of a block and elements of a value, rounded up
  int64_t values, scores, tile, most, sum, total;  // the transposed keys are at 0
};

}  // namespace anymps::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace anymps::cpu::HWY_NAMESPACE {
namespace {

using attention::multiply;
using attention::transpose;

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();
constexpr float kLog2E = 1.44269504f;

// 2^x for x <= 0 to 2e-7, 0 below 2^-126, NaN for NaN. Adding kMagic rounds x to a whole number n
// and leaves n + 127, the exponent of 2^n, in the lowest bits; for n = -127 that makes 0.
HWY_INLINE V exp2_of_negative(Tag d, V x) {
  constexpr float kMagic = 12582912.0f + 127.0f;
  const hn::RebindToUnsigned<Tag> du;
  const V bounded = hn::Max(hn::Set(d, -127.0f), x);  // the second if one is NaN
  const V shifted = hn::Add(bounded, hn::Set(d, kMagic));
  const V r = hn::Sub(bounded, hn::Sub(shifted, hn::Set(d, kMagic)));
  V y = hn::Set(d, 1.33908634e-3f);
  y = hn::MulAdd(y, r, hn::Set(d, 9.67603192e-3f));
  y = hn::MulAdd(y, r, hn::Set(d, 5.55035711e-2f));
  y = hn::MulAdd(y, r, hn::Set(d, 0.240221075f));
  y = hn::MulAdd(y, r, hn::Set(d, 0.693147188f));
  y = hn::MulAdd(y, r, hn::Set(d, 1.0f));
  return hn::Mul(y, hn::BitCast(d, hn::ShiftLeft<23>(hn::BitCast(du, shifted))));
}

float largest_of(const float* HWY_RESTRICT scores, int64_t columns, float most) {
  const Tag d;
  const int64_t lanes = hn::Lanes(d);
  V largest = hn::Set(d, most);
  for (int64_t j = 0; j < columns; j += lanes) largest = hn::Max(largest, hn::Load(d, scores + j));
  return hn::GetLane(hn::MaxOfLanes(d, largest));
}

// scores become 2^((score - base) * factor); gives their sum.
float weigh(float* HWY_RESTRICT scores, int64_t columns, float factor, float base) {
  const Tag d;
  const int64_t lanes = hn::Lanes(d);
  const V scale = hn::Set(d, factor);
  V sum = hn::Zero(d);
  if (std::abs(base) < 1e30f) {
    const V offset = hn::Set(d, base * factor);
    for (int64_t j = 0; j < columns; j += lanes) {
      const V y = exp2_of_negative(d, hn::MulSub(hn::Load(d, scores + j), scale, offset));
      hn::Store(y, d, scores + j);
      sum = hn::Add(sum, y);
    }
  } else {  // base * factor may overflow
    const V offset = hn::Set(d, base);
    for (int64_t j = 0; j < columns; j += lanes) {
      const V x = hn::Mul(hn::Sub(hn::Load(d, scores + j), offset), scale);
      const V y = exp2_of_negative(d, x);
      hn::Store(y, d, scores + j);
      sum = hn::Add(sum, y);
    }
  }
  return hn::GetLane(hn::SumOfLanes(d, sum));
}

// Scales the scores and applies the mask of one query.
void apply_mask(const AttentionTask& t, int64_t query, int64_t key, int64_t keys, float* scores) {
  const int64_t at = query * t.mask_row + key * t.mask_column;
  if (t.mask && t.mask_column == 1) {
    const Tag d;
    const int64_t lanes = hn::Lanes(d);
    const V scale = hn::Set(d, t.scale);
    int64_t j = 0;
    for (; j + lanes <= keys; j += lanes)
      hn::Store(hn::MulAdd(hn::Load(d, scores + j), scale, hn::LoadU(d, t.mask + at + j)), d,
                scores + j);
    for (; j < keys; ++j) scores[j] = scores[j] * t.scale + t.mask[at + j];
  } else if (t.mask) {
    for (int64_t j = 0; j < keys; ++j)
      scores[j] = scores[j] * t.scale + t.mask[at + j * t.mask_column];
  } else if (t.keep) {
    for (int64_t j = 0; j < keys; ++j)
      scores[j] = t.keep[at + j * t.mask_column] ? scores[j] * t.scale : kMinusInfinity;
  } else {
    for (int64_t j = 0; j < keys; ++j) scores[j] *= t.scale;
  }
}

// y = (y * before + tile) * after; y is not read if `before` is 0.
void merge(const float* tile, int64_t width, float before, float after, float* y) {
  const Tag d;
  const int64_t lanes = hn::Lanes(d);
  int64_t j = 0;
  if (before == 0) {
    const V scale = hn::Set(d, after);
    for (; j + lanes <= width; j += lanes)
      hn::StoreU(hn::Mul(hn::Load(d, tile + j), scale), d, y + j);
    for (; j < width; ++j) y[j] = tile[j] * after;
    return;
  }
  const V keep = hn::Set(d, before), scale = hn::Set(d, after);
  for (; j + lanes <= width; j += lanes)
    hn::StoreU(hn::Mul(hn::MulAdd(hn::LoadU(d, y + j), keep, hn::Load(d, tile + j)), scale), d,
               y + j);
  for (; j < width; ++j) y[j] = (y[j] * before + tile[j]) * after;
}

void attend_here(const AttentionTask& t) {
  const AttentionBuffers at(t.queries, t.keys, t.depth, t.width);
  float* const transposed = t.scratch;
  float* const scores = t.scratch + at.scores;
  float* const tile = t.scratch + at.tile;
  float* const most = t.scratch + at.most;
  float* const sum = t.scratch + at.sum;
  const int64_t lanes = hn::Lanes(Tag());
  std::fill_n(most, t.queries, kMinusInfinity);
  std::fill_n(sum, t.queries, 0.0f);
  // Without a mask the scale is left to the exponent; the largest score is found before it.
  const bool scaled = t.mask || t.keep || t.scale <= 0;
  const float factor = (scaled ? 1 : t.scale) * kLog2E;
  const int64_t all_keys = t.causal ? std::min(t.keys, t.first_query + t.queries) : t.keys;
  for (int64_t key = 0; key < all_keys; key += kKeyBlock) {
    const int64_t keys = std::min(kKeyBlock, all_keys - key), columns = round_up(keys);
    transpose(t.k + key * t.k_row, t.k_row, keys, t.depth, transposed, columns);
    const float* values = t.v + key * t.v_row;
    int64_t values_row = t.v_row;
    if (t.width % lanes != 0) {
      float* copy = t.scratch + at.values;
      for (int64_t i = 0; i < keys; ++i) {
        std::copy_n(values + i * t.v_row, t.width, copy + i * at.columns);
        std::fill_n(copy + i * at.columns + t.width, at.columns - t.width, 0.0f);
      }
      values = copy;
      values_row = at.columns;
    }
    const int64_t width = (t.width + lanes - 1) / lanes * lanes;
    for (int64_t query = 0; query < t.queries; query += kRows) {
      const int64_t rows = std::min(kRows, t.queries - query);
      const int64_t last =
          t.first_query + query + rows;  // keys that the last row of a causal tile keeps
      const int64_t end = t.causal ? std::min(t.keys, last) : t.keys;
      if (key >= end) continue;
      const int64_t used = std::min(keys, end - key);
      multiply<false>(rows, t.depth, t.q + query * t.q_row, t.q_row, 1, transposed, columns, scores,
                      columns, columns);
      float base[kRows], correction[kRows];
      for (int64_t r = 0; r < rows; ++r) {
        float* row = scores + r * columns;
        if (scaled) apply_mask(t, query + r, key, keys, row);
        const int64_t kept =
            t.causal ? std::clamp<int64_t>(t.first_query + query + r + 1 - key, 0, keys) : keys;
        std::fill(row + kept, row + columns, kMinusInfinity);
        const float before = most[query + r], now = largest_of(row, columns, before);
        base[r] = now == kMinusInfinity ? 0 : now;
        // What was summed so far is relative to the largest score before this block.
        correction[r] = before == kMinusInfinity ? 0 : std::exp2((before - base[r]) * factor);
        most[query + r] = now;
      }
      for (int64_t r = 0; r < rows; ++r)
        sum[query + r] =
            sum[query + r] * correction[r] + weigh(scores + r * columns, columns, factor, base[r]);
      multiply<false>(rows, used, scores, columns, 1, values, values_row, tile, at.columns, width);
      const bool is_last = key + kKeyBlock >= end;
      for (int64_t r = 0; r < rows; ++r) {
        const float total = sum[query + r];
        merge(tile + r * at.columns, t.width, key == 0 ? 0 : correction[r],
              !is_last     ? 1
              : total == 0 ? 0
                           : 1 / total,
              t.y + (query + r) * t.y_row);
      }
    }
  }
  if (!t.log_sum) return;
  for (int64_t i = 0; i < t.queries; ++i)
    t.log_sum[i] =
        sum[i] == 0 ? kMinusInfinity : most[i] * (scaled ? 1 : t.scale) + std::log(sum[i]);
}

}  // namespace
}  // namespace anymps::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anymps::cpu {

HWY_EXPORT(attend_here);

size_t attention_scratch(int64_t queries, int64_t keys, int64_t depth, int64_t width) {
  return AttentionBuffers(queries, keys, depth, width).total;
}

void attend(const AttentionTask& task) {
  isa();
  HWY_DYNAMIC_DISPATCH(attend_here)(task);
}

}  // namespace anymps::cpu
#endif
