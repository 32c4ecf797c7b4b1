// SPDX-License-Identifier: Apache-2.0
// What the many attention ops of ONNX and of com.microsoft share: heads side by side or in a
// separate axis, which key a query may see, the scores, and rotary embedding.
#pragma once

#include "formats/onnx/read/call.h"

namespace anymps::onnx {

// An i64 scalar.
Value* number(Call& c, int64_t value);
// The extent of an axis as an i64 scalar; a constant where it is known.
Value* extent_of(Call& c, Value* x, int64_t axis);
// 0, 1, … up to the scalar `count`, an i64 vector.
Value* count_up(Call& c, Value* count);

// [B, S, H*D] -> [B, H, S, D], and back.
Value* split_heads(Call& c, Value* x, int64_t heads);
Value* join_heads(Call& c, Value* x);
// Several query heads share one head of K and V: repeat each head for them.
Value* repeat_heads(Call& c, Value* x, int64_t times);

// Which keys a query may see.
struct Sight {
  bool causal = false;
  int64_t left = -1, right = -1;  // how far back and ahead a query sees; -1: any distance
  Value* offset = nullptr;        // keys before the first query: i64, a scalar or [B, 1, 1, 1]
  Value* keys = nullptr;          // how many keys are not padding: i64 [B, 1, 1, 1]
  Value* mask = nullptr;          // bool, or floats that are added; broadcasts to [B, H, S, T]
  bool extend_mask = false;       // a mask shorter than the keys hides the rest
};

struct Scores {
  double scale = 0, softcap = 0;
  std::optional<DType> softmax_dtype;
  Value* bias = nullptr;  // added to the scores, beside the mask
  int output = -1;        // which scores are wanted: 0 raw, 1 capped, 2 biased, 3 softmax
};

// Attention over [B, H, S, D] with as many heads of K and V as of Q: y, and the scores asked for.
Values attend(Call& c, Value* q, Value* k, Value* v, const Sight& sight, const Scores& scores);

// Turns pairs of elements by angles. x is [B, S, H, D] (heads_axis 2) or [B, H, S, D] (1); cos and
// sin are [B, S, R/2], or [S, R/2] for every batch.
struct Rotation {
  bool interleaved = false;
  int64_t width = 0;  // how many elements of a head turn; 0: all
  size_t heads_axis = 1;
};
Value* rotate(Call& c, Value* x, Value* cos, Value* sin, const Rotation& rotation);

}  // namespace anymps::onnx
