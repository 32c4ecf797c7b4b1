// SPDX-License-Identifier: Apache-2.0
// The softmax of one line of scores, with vectors where a line of f32 is dense.
#pragma once

#include <type_traits>

#include "drivers/cpu/common/row_access.h"
#include "drivers/cpu/common/row_ops.h"
#include "semantics/softmax.h"

namespace anymps::cpu {

// One line of classes; `exponentials`, if it is given, gets e^(x - highest).
template <typename T>
SoftmaxLine softmax_of(const T* x, int64_t step, int64_t length, T* exponentials,
                       int64_t exponential_step) {
  if constexpr (std::is_same_v<T, float>) {
    if (step == 1 && (!exponentials || exponential_step == 1)) {
      SoftmaxLine result;
      const float highest = row_ops().max_number(x, static_cast<size_t>(length));
      result.highest = double{highest};
      for_row_tiles(length, [&](int64_t i, int64_t n) {
        result.sum +=
            double{row_ops().exp_sum(x + i, highest, exponentials ? exponentials + i : nullptr, n)};
      });
      return result;
    }
  }
  return softmax_line(x, step, length, [&](int64_t i, double value) {
    if (exponentials) exponentials[i * exponential_step] = static_cast<T>(value);
  });
}

}  // namespace anymps::cpu
