// SPDX-License-Identifier: Apache-2.0
// The inner part of the gradient of attention: all queries of one head against all its keys, in
// f32.
#pragma once

#include <cstddef>
#include <cstdint>

namespace anymps::cpu {

inline constexpr int64_t kGradientRound = 16;  // floats to which rows are padded, with zeros

// Dense rows, padded to `depth_row` and `width_row` floats, 64-byte aligned.
struct AttentionGradientTask {
  const float *q = nullptr, *k = nullptr, *v = nullptr, *dy = nullptr;
  float *dq = nullptr, *dk = nullptr, *dv = nullptr;  // zeros before
  int64_t queries = 0, keys = 0, depth = 0, width = 0, depth_row = 0, width_row = 0;
  float* log_sum = nullptr;  // of each query; computed first if `own_sums`
  bool own_sums = false;
  const float* delta = nullptr;  // sum of dy * y of each query
  float scale = 1;
  bool causal = false;
  const float* mask = nullptr;    // added to the scores
  const uint8_t* keep = nullptr;  // scores stay where it is not 0
  int64_t mask_row = 0, mask_column = 0;
  float* scratch = nullptr;  // attention_gradient_scratch() floats, 64-byte aligned
};

size_t attention_gradient_scratch(int64_t keys, int64_t depth, int64_t width);
void attend_back(const AttentionGradientTask& task);

}  // namespace anymps::cpu
