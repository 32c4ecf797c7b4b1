// SPDX-License-Identifier: Apache-2.0
// What a scatter does to the elements that it reaches, as functions over runs of them: one pair for
// each mode and dtype.
#pragma once

#include "base/dtype.h"
#include "semantics/scatter_modes.h"

namespace anymps::cpu {

struct ScatterJoin {
  // to[i] with from[i].
  void (*row)(void* to, const void* from, int64_t n) = nullptr;
  // to[places[i]] with from[i * from_step], one after the other.
  void (*line)(void* to, const int64_t* places, const void* from, int64_t from_step,
               int64_t n) = nullptr;
};

ScatterJoin scatter_join_of(ScatterMode mode, DType dtype);
// Sets elements to what changes nothing; updates are not looked at.
ScatterJoin scatter_reset_of(ScatterMode mode, DType dtype);
// Counts, in i64, how often elements are reached.
ScatterJoin scatter_count();

// Sums become means: each of n elements is divided by how often it was reached, and `own` more.
void scatter_divide(void* y, const int64_t* counts, int64_t n, int64_t own, DType dtype);

}  // namespace anymps::cpu
