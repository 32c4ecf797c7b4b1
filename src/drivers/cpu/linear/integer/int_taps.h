// SPDX-License-Identifier: Apache-2.0
// Sums over the taps of one channel: what convolutions of bytes by channel are made of.
#pragma once

#include <cstdint>

#include "base/dtype.h"

namespace anymps::cpu {

inline constexpr int64_t kMostTaps = 128;

// sums[j] = sum over k of weights[k] * x[offsets[k] + j]. Whole vectors of bytes are read.
struct IntTaps {
  DType dtype = DType::kU8;
  bool flip = false;  // bytes of i8 become u8
  const uint8_t* from = nullptr;
  const int64_t* offsets = nullptr;
  int64_t count = 0, columns = 0;
  int32_t weights[kMostTaps];
};
void sum_taps(const IntTaps& taps, int32_t* sums);

}  // namespace anymps::cpu
