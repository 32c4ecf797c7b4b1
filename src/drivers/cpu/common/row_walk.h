// SPDX-License-Identifier: Apache-2.0
// Rows one after the other, without a division for each.
#pragma once

#include "drivers/cpu/common/rows.h"

namespace anymps::cpu {

class RowWalk {
 public:
  RowWalk(const Rows& rows, int64_t row) : loops_(rows.outer), index_(loops_.extents.size()) {
    for (size_t i = index_.size(); i-- > 0;) {
      index_[i] = row % loops_.extents[i];
      row /= loops_.extents[i];
    }
    for (size_t k = 0; k < loops_.strides.size(); ++k)
      for (size_t i = 0; i < index_.size(); ++i) at_[k] += index_[i] * loops_.strides[k][i];
  }
  const Offsets& at() const { return at_; }
  void next() {
    for (size_t i = index_.size(); i-- > 0;) {
      const bool wraps = ++index_[i] == loops_.extents[i];
      const int64_t steps = wraps ? 1 - loops_.extents[i] : 1;
      for (size_t k = 0; k < loops_.strides.size(); ++k) at_[k] += steps * loops_.strides[k][i];
      if (!wraps) return;
      index_[i] = 0;
    }
  }

 private:
  const Loops& loops_;
  Shape index_;
  Offsets at_{};
};

}  // namespace anymps::cpu
