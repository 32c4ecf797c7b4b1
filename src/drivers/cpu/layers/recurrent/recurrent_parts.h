// SPDX-License-Identifier: Apache-2.0
// What our own kernels of recurrent layers share, whatever they do with the weights.
#pragma once

#include <string>

#include "base/error.h"
#include "base/shape.h"

namespace anymps::cpu {

enum class RecurrentKind { kLstm, kGru, kRnn };

inline int64_t recurrent_gates(RecurrentKind kind) {
  return kind == RecurrentKind::kLstm ? 4 : kind == RecurrentKind::kGru ? 3 : 1;
}

// Places in a kernel's scratch memory, one after the other.
class ScratchPlan {
 public:
  template <typename T>
  int64_t take(int64_t count) {  // returns where, in bytes
    const int64_t at = bytes_;
    bytes_ += (count * static_cast<int64_t>(sizeof(T)) + 63) / 64 * 64;
    return at;
  }
  int64_t bytes() const { return bytes_; }

 private:
  int64_t bytes_ = 0;
};

// The lengths of all sequences, input seq_lens of `op`.
inline void read_lengths(const std::string& op, const TensorDesc& desc, const void* from,
                         int64_t steps, int64_t* to) {
  for (int64_t n = 0; n < desc.shape[0]; ++n) {
    const int64_t at = n * desc.strides[0];
    const int64_t length = desc.dtype == DType::kI64
                               ? static_cast<const int64_t*>(from)[at]
                               : int64_t{static_cast<const int32_t*>(from)[at]};
    require(length >= 0 && length <= steps, "[{}] seq_lens has the entry {}, must be 0 to {}", op,
            length, steps);
    to[n] = length;
  }
}

}  // namespace anymps::cpu
