// SPDX-License-Identifier: Apache-2.0
// Reads and writes parts of a row of f32 or half elements as contiguous f32, with no copy where the
// memory is that already.
#pragma once

#include <algorithm>
#include <cstdint>

#include "drivers/cpu/elementwise/strided_tile.h"
#include "drivers/cpu/elementwise/tile_ops.h"

namespace anymps::cpu {

inline constexpr int64_t kRowTile = 1024;  // elements read or written at once

class RowAccess {
 public:
  RowAccess() = default;
  RowAccess(DType dtype, int64_t stride)
      : element_(size_of(dtype)),
        stride_(stride),
        load_(is_half(dtype) ? find_tile_op("load", dtype)->run : nullptr),
        store_(is_half(dtype) ? find_tile_op("store", dtype)->run : nullptr) {}

  bool direct() const { return stride_ == 1 && !load_; }
  // Elements [first, first + n) of the row at `row`; `buffer` has room for kRowTile floats.
  const float* read(const void* row, int64_t first, int64_t n, float* buffer) const {
    const char* from = at(row, first);
    if (stride_ != 1) {
      if (!load_) {
        gather_tile(buffer, from, element_, 1, n, 0, stride_);
        return buffer;
      }
      alignas(64) uint16_t raw[kRowTile];
      gather_tile(raw, from, element_, 1, n, 0, stride_);
      load_({{raw, nullptr, nullptr}, buffer, static_cast<size_t>(n), nullptr});
      return buffer;
    }
    if (!load_) return reinterpret_cast<const float*>(from);
    load_({{from, nullptr, nullptr}, buffer, static_cast<size_t>(n), nullptr});
    return buffer;
  }
  // Where to compute what is then given to write().
  float* target(void* row, int64_t first, float* buffer) const {
    return direct() ? reinterpret_cast<float*>(at(row, first)) : buffer;
  }
  void write(void* row, int64_t first, int64_t n, const float* values) const {
    if (direct()) return;
    char* to = at(row, first);
    if (!store_) return scatter_tile(to, values, element_, 1, n, 0, stride_);
    if (stride_ == 1)
      return store_({{values, nullptr, nullptr}, to, static_cast<size_t>(n), nullptr});
    alignas(64) uint16_t raw[kRowTile];
    store_({{values, nullptr, nullptr}, raw, static_cast<size_t>(n), nullptr});
    scatter_tile(to, raw, element_, 1, n, 0, stride_);
  }

 private:
  const char* at(const void* row, int64_t first) const {
    return static_cast<const char*>(row) + first * stride_ * element_;
  }
  char* at(void* row, int64_t first) const {
    return static_cast<char*>(row) + first * stride_ * element_;
  }

  int64_t element_ = 4;
  int64_t stride_ = 1;
  TileFn load_ = nullptr, store_ = nullptr;
};

// Calls fn(first, n) for the parts of a row.
template <typename Fn>
void for_row_tiles(int64_t length, Fn&& fn) {
  for (int64_t first = 0; first < length; first += kRowTile)
    fn(first, std::min(kRowTile, length - first));
}

}  // namespace anymps::cpu
