// SPDX-License-Identifier: Apache-2.0
// The gradient of attention over blocks of keys and queries that stay in the cache: the weights are
// computed again from the scores, so that the matrix of scores never exists. Compiled once for each
// instruction set.
#include "drivers/cpu/layers/attention_gradient_simd.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "drivers/cpu/isa.h"

#define HWY_TARGET_INCLUDE "drivers/cpu/layers/attention_gradient_simd.cc"
#include "drivers/cpu/all_targets.h"

#include "drivers/cpu/common/math-inl.h"
#include "drivers/cpu/layers/attention-inl.h"

#ifndef ANYMPS_ATTENTION_GRADIENT_ONCE
#define ANYMPS_ATTENTION_GRADIENT_ONCE
namespace anymps::cpu {

constexpr int64_t kBackKeys = 256, kBackQueries = 96;  // of a block
constexpr int64_t kBackRows = 6;                       // of a tile of a product

// The scratch memory of a task, in floats.
struct AttentionGradientBuffers {
  AttentionGradientBuffers(int64_t keys, int64_t depth, int64_t width) {
    block = (std::min(keys, kBackKeys) + kGradientRound - 1) / kGradientRound * kGradientRound;
    values = depth * block;
    weights = values + width * block;
    slopes = weights + kBackQueries * block;
    total = slopes + kBackQueries * block;
  }
  int64_t block;                           // keys of a block, rounded up
  int64_t values, weights, slopes, total;  // the transposed keys are at 0
};

}  // namespace anymps::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace anymps::cpu::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using Tag = hn::ScalableTag<float>;
using V = hn::Vec<Tag>;
using attention::multiply;
using attention::transpose;

constexpr float kNever = -std::numeric_limits<float>::infinity();

// A block of keys against a block of queries.
struct Block {
  int64_t key, keys, columns;  // columns: keys rounded up
  int64_t query, queries;
};

// c[rows, columns] += or = a[rows, depth] * b[depth, columns], of any number of rows.
template <bool add>
void multiply_all(int64_t rows, int64_t depth, const float* a, int64_t a_row, int64_t a_column,
                  const float* b, int64_t b_row, float* c, int64_t c_row, int64_t columns) {
  for (int64_t r = 0; r < rows; r += kBackRows)
    multiply<add>(std::min(kBackRows, rows - r), depth, a + r * a_row, a_row, a_column, b, b_row,
                  c + r * c_row, c_row, columns);
}

// How many keys of the block a query keeps.
int64_t kept_keys(const AttentionGradientTask& t, const Block& b, int64_t query) {
  return t.causal ? std::clamp<int64_t>(query + 1 - b.key, 0, b.keys) : b.keys;
}

// Scores of one query, scaled and masked; -infinity behind the keys that it keeps.
void mask_scores(const AttentionGradientTask& t, const Block& b, int64_t query, float* scores) {
  const Tag d;
  const int64_t lanes = hn::Lanes(d), kept = kept_keys(t, b, query);
  const V scale = hn::Set(d, t.scale);
  const int64_t at = query * t.mask_row + b.key * t.mask_column;
  int64_t j = 0;
  if (t.mask && t.mask_column == 1) {
    for (; j + lanes <= kept; j += lanes)
      hn::Store(hn::MulAdd(hn::Load(d, scores + j), scale, hn::LoadU(d, t.mask + at + j)), d,
                scores + j);
    for (; j < kept; ++j) scores[j] = scores[j] * t.scale + t.mask[at + j];
  } else if (t.mask) {
    for (; j < kept; ++j) scores[j] = scores[j] * t.scale + t.mask[at + j * t.mask_column];
  } else {
    for (; j < b.columns; j += lanes)
      hn::Store(hn::Mul(hn::Load(d, scores + j), scale), d, scores + j);
    for (j = 0; t.keep && j < kept; ++j)
      if (!t.keep[at + j * t.mask_column]) scores[j] = kNever;
  }
  std::fill(scores + kept, scores + b.columns, kNever);
}

// The running maximum and sum of the scores of a query.
void add_scores(const float* scores, int64_t columns, float& most, float& sum) {
  const Tag d;
  const int64_t lanes = hn::Lanes(d);
  V largest = hn::Set(d, most);
  for (int64_t j = 0; j < columns; j += lanes) largest = hn::Max(largest, hn::Load(d, scores + j));
  const float now = hn::GetLane(hn::MaxOfLanes(d, largest));
  if (now == kNever) return;
  V total = hn::Zero(d);
  for (int64_t j = 0; j < columns; j += lanes)
    total = hn::Add(total, math::exp(d, hn::Sub(hn::Load(d, scores + j), hn::Set(d, now))));
  sum = sum * std::exp(most - now) + hn::GetLane(hn::SumOfLanes(d, total));
  most = now;
}

// Scores become weights p = e^(score - log_sum), and slopes (dp) p * (dp - delta) * scale.
void weigh_slopes(const AttentionGradientTask& t, int64_t columns, int64_t query, float* scores,
                  float* slopes) {
  const Tag d;
  const int64_t lanes = hn::Lanes(d);
  if (t.log_sum[query] == kNever) {  // no key is kept
    std::fill_n(scores, columns, 0.0f);
    std::fill_n(slopes, columns, 0.0f);
    return;
  }
  const V sum = hn::Set(d, t.log_sum[query]), delta = hn::Set(d, t.delta[query]),
          scale = hn::Set(d, t.scale);
  for (int64_t j = 0; j < columns; j += lanes) {
    const V p = math::exp(d, hn::Sub(hn::Load(d, scores + j), sum));
    hn::Store(p, d, scores + j);
    hn::Store(hn::Mul(hn::Mul(p, hn::Sub(hn::Load(d, slopes + j), delta)), scale), d, slopes + j);
  }
}

// Calls fn(block, transposed keys) for all blocks in which a key is kept.
template <class Begin, class Fn>
HWY_INLINE void for_blocks(const AttentionGradientTask& t, const AttentionGradientBuffers& at,
                           Begin begin, Fn fn) {
  for (int64_t key = 0; key < t.keys; key += kBackKeys) {
    Block b{key, std::min(kBackKeys, t.keys - key), 0, 0, 0};
    b.columns = (b.keys + kGradientRound - 1) / kGradientRound * kGradientRound;
    transpose(t.k + key * t.depth_row, t.depth_row, b.keys, t.depth, t.scratch, b.columns);
    begin(b);
    // The first query that keeps the block's first key.
    const int64_t first = t.causal ? std::min(key, t.queries) : 0;
    for (b.query = first; b.query < t.queries; b.query += kBackQueries) {
      b.queries = std::min(kBackQueries, t.queries - b.query);
      multiply_all<false>(b.queries, t.depth, t.q + b.query * t.depth_row, t.depth_row, 1,
                          t.scratch, b.columns, t.scratch + at.weights, b.columns, b.columns);
      for (int64_t r = 0; r < b.queries; ++r)
        mask_scores(t, b, b.query + r, t.scratch + at.weights + r * b.columns);
      fn(b);
    }
  }
}

// log_sum holds the running maxima, and dq's first column the sums, until both are done.
void find_sums(const AttentionGradientTask& t, const AttentionGradientBuffers& at) {
  std::fill_n(t.log_sum, t.queries, kNever);
  for_blocks(
      t, at, [](const Block&) HWY_ATTR {},
      [&](const Block& b) HWY_ATTR {
        for (int64_t r = 0; r < b.queries; ++r)
          add_scores(t.scratch + at.weights + r * b.columns, b.columns, t.log_sum[b.query + r],
                     t.dq[(b.query + r) * t.depth_row]);
      });
  for (int64_t i = 0; i < t.queries; ++i) {
    float& sum = t.dq[i * t.depth_row];
    if (t.log_sum[i] != kNever) t.log_sum[i] += std::log(sum);
    sum = 0;
  }
}

void attend_back_here(const AttentionGradientTask& t) {
  const AttentionGradientBuffers at(t.keys, t.depth, t.width);
  float *const values = t.scratch + at.values, *const weights = t.scratch + at.weights,
               *const slopes = t.scratch + at.slopes;
  if (t.own_sums) find_sums(t, at);
  for_blocks(
      t, at,
      [&](const Block& b) HWY_ATTR {
        transpose(t.v + b.key * t.width_row, t.width_row, b.keys, t.width, values, b.columns);
      },
      [&](const Block& b) HWY_ATTR {
        const float* const q = t.q + b.query * t.depth_row;
        const float* const dy = t.dy + b.query * t.width_row;
        multiply_all<false>(b.queries, t.width, dy, t.width_row, 1, values, b.columns, slopes,
                            b.columns, b.columns);
        for (int64_t r = 0; r < b.queries; ++r)
          weigh_slopes(t, b.columns, b.query + r, weights + r * b.columns, slopes + r * b.columns);
        multiply_all<true>(b.keys, b.queries, weights, 1, b.columns, dy, t.width_row,
                           t.dv + b.key * t.width_row, t.width_row, t.width_row);
        multiply_all<true>(b.keys, b.queries, slopes, 1, b.columns, q, t.depth_row,
                           t.dk + b.key * t.depth_row, t.depth_row, t.depth_row);
        multiply_all<true>(b.queries, b.keys, slopes, b.columns, 1, t.k + b.key * t.depth_row,
                           t.depth_row, t.dq + b.query * t.depth_row, t.depth_row, t.depth_row);
      });
}

}  // namespace
}  // namespace anymps::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anymps::cpu {

HWY_EXPORT(attend_back_here);

size_t attention_gradient_scratch(int64_t keys, int64_t depth, int64_t width) {
  return AttentionGradientBuffers(keys, depth, width).total;
}

void attend_back(const AttentionGradientTask& task) {
  isa();
  HWY_DYNAMIC_DISPATCH(attend_back_here)(task);
}

}  // namespace anymps::cpu
#endif
