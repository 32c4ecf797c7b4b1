// SPDX-License-Identifier: Apache-2.0
// The inner part of attention: some queries of one head against all its keys, in f32.
#pragma once

#include <cstddef>
#include <cstdint>

namespace anymps::cpu {

// Rows are strided, the elements of a row are adjacent.
struct AttentionTask {
  const float *q = nullptr, *k = nullptr, *v = nullptr;
  float* y = nullptr;
  int64_t q_row = 0, k_row = 0, v_row = 0, y_row = 0;
  int64_t queries = 0, keys = 0, depth = 0, width = 0;
  float scale = 1;
  int64_t first_query = 0;  // of these queries among all; a causal query keeps keys up to its own
  bool causal = false;
  const float* mask = nullptr;    // added to the scores
  const uint8_t* keep = nullptr;  // scores stay where it is not 0
  int64_t mask_row = 0, mask_column = 0;
  float* log_sum = nullptr;  // null: not asked for; else the logarithm of each query's sum
  float* scratch = nullptr;  // attention_scratch() floats, 64-byte aligned
};

size_t attention_scratch(int64_t queries, int64_t keys, int64_t depth, int64_t width);
void attend(const AttentionTask& task);

}  // namespace anymps::cpu
