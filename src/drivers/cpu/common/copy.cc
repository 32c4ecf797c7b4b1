// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/common/copy.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "drivers/cpu/common/by_size.h"
#include "drivers/cpu/common/interleave.h"
#include "drivers/cpu/elementwise/strided_tile.h"
#include "drivers/cpu/threads.h"

namespace anymps::cpu {

namespace {

constexpr int64_t kDenseChunk = 64 * 1024;  // bytes
constexpr int64_t kPixels = 4096;           // whose planes are brought together at once

// to[r * to_row + c] = from[c * from_column + r]
template <typename T>
void transpose(T* to, int64_t to_row, const T* from, int64_t from_column, int64_t rows,
               int64_t columns) {
  int64_t r = 0;
#if defined(__SSE2__)
  if constexpr (sizeof(T) == 4) {
    for (; r + 4 <= rows; r += 4) {
      int64_t c = 0;
      for (; c + 4 <= columns; c += 4) {
        const auto* in = reinterpret_cast<const float*>(from + c * from_column + r);
        auto* out = reinterpret_cast<float*>(to + r * to_row + c);
        __m128 a = _mm_loadu_ps(in), b = _mm_loadu_ps(in + from_column);
        __m128 d = _mm_loadu_ps(in + 2 * from_column), e = _mm_loadu_ps(in + 3 * from_column);
        _MM_TRANSPOSE4_PS(a, b, d, e);
        _mm_storeu_ps(out, a);
        _mm_storeu_ps(out + to_row, b);
        _mm_storeu_ps(out + 2 * to_row, d);
        _mm_storeu_ps(out + 3 * to_row, e);
      }
      for (; c < columns; ++c)
        for (int64_t k = r; k < r + 4; ++k) to[k * to_row + c] = from[c * from_column + k];
    }
  }
  if constexpr (sizeof(T) == 8) {
    for (; r + 2 <= rows; r += 2) {
      int64_t c = 0;
      for (; c + 2 <= columns; c += 2) {
        const auto* in = reinterpret_cast<const double*>(from + c * from_column + r);
        auto* out = reinterpret_cast<double*>(to + r * to_row + c);
        const __m128d a = _mm_loadu_pd(in), b = _mm_loadu_pd(in + from_column);
        _mm_storeu_pd(out, _mm_unpacklo_pd(a, b));
        _mm_storeu_pd(out + to_row, _mm_unpackhi_pd(a, b));
      }
      for (; c < columns; ++c)
        for (int64_t k = r; k < r + 2; ++k) to[k * to_row + c] = from[c * from_column + k];
    }
  }
#endif
  for (; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c) to[r * to_row + c] = from[c * from_column + r];
}

// Rows of a target that has gaps or runs backwards.
template <typename T>
void spread(T* to, int64_t to_step, const T* from, int64_t from_step, int64_t count) {
  if (from_step == 1)
    for (int64_t i = 0; i < count; ++i) to[i * to_step] = from[i];
  else
    for (int64_t i = 0; i < count; ++i) to[i * to_step] = from[i * from_step];
}

// The places of both operands, one after the other, without divisions.
class Walk {
 public:
  Walk(const Loops& loops, int64_t start) : loops_(loops), index_(loops.extents.size()) {
    for (size_t i = index_.size(); i-- > 0;) {
      index_[i] = start % loops.extents[i];
      start /= loops.extents[i];
      to += index_[i] * loops.strides[0][i];
      from += index_[i] * loops.strides[1][i];
    }
  }
  void next() {
    for (size_t i = index_.size(); i-- > 0;) {
      to += loops_.strides[0][i];
      from += loops_.strides[1][i];
      if (++index_[i] < loops_.extents[i]) return;
      to -= loops_.strides[0][i] * loops_.extents[i];
      from -= loops_.strides[1][i] * loops_.extents[i];
      index_[i] = 0;
    }
  }
  int64_t to = 0, from = 0;

 private:
  const Loops& loops_;
  Shape index_;
};

void drop(Loops& loops, size_t axis) {
  loops.extents.erase(axis);
  for (Strides& strides : loops.strides) strides.erase(axis);
}

}  // namespace

StridedCopy::StridedCopy(size_t element, const Shape& shape, const Strides& to, const Strides& from)
    : element_(element), outer_(make_loops(shape, {to, from})) {
  const int64_t count = outer_.count();
  if (count == 0) return;
  if (!outer_.extents.empty()) {
    columns_ = outer_.extents.back();
    to_column_ = outer_.strides[0].back();
    from_column_ = outer_.strides[1].back();
    drop(outer_, outer_.extents.size() - 1);
  }
  const double bytes = static_cast<double>(element_);
  if (outer_.extents.empty() && to_column_ == 1 && from_column_ == 1) {
    mode_ = Mode::kDense;
    const int64_t total = columns_ * element_;
    units_ = (total + kDenseChunk - 1) / kDenseChunk;
    unit_ns_ = static_cast<double>(std::min(total, kDenseChunk)) * 0.1;
    return;
  }
  if (to_column_ == 1 && from_column_ != 1 && from_column_ != 0 && columns_ > 1) {
    for (size_t i = outer_.extents.size(); i-- > 0;) {
      if (outer_.strides[1][i] != 1) continue;
      mode_ = Mode::kTranspose;
      rows_ = outer_.extents[i];
      to_row_ = outer_.strides[0][i];
      drop(outer_, i);
      break;
    }
  }
  if (mode_ == Mode::kTranspose) {
    // A cache line of rows, and as many columns: lines of both sides that are a power of two apart
    // share a few places in the cache, and more of them would drive each other out.
    interleaves_ = element_ == 1 && columns_ <= kMostPlanes && to_row_ == columns_;
    block_ = interleaves_ ? kPixels : std::clamp<int64_t>(64 / element_, 8, 64);
    blocks_ = (rows_ + block_ - 1) / block_;
    units_ = outer_.count() * blocks_;
    unit_ns_ = static_cast<double>(columns_ * std::min(rows_, block_)) * bytes * 0.15;
  } else {
    units_ = outer_.count();
    const bool dense = to_column_ == 1 && (from_column_ == 1 || from_column_ == 0);
    unit_ns_ = 5 + static_cast<double>(columns_) * (dense ? 0.1 * bytes : 1.0);
  }
}

void StridedCopy::run_rows(char* to, const char* from, int64_t begin, int64_t end) const {
  const int64_t size = element_;
  const int64_t bytes = columns_ * element_;
  Walk walk(outer_, begin);
  for (int64_t i = begin; i < end; ++i, walk.next()) {
    char* target = to + walk.to * size;
    const char* source = from + walk.from * size;
    if (to_column_ != 1) {
      by_size(element_, [&]<typename T>() {
        spread(reinterpret_cast<T*>(target), to_column_, reinterpret_cast<const T*>(source),
               from_column_, columns_);
      });
    } else if (from_column_ == 1) {
      std::memcpy(target, source, bytes);
    } else {
      gather_tile(target, source, element_, 1, columns_, 0, from_column_);
    }
  }
}

void StridedCopy::run_blocks(char* to, const char* from, int64_t begin, int64_t end) const {
  const int64_t size = element_;
  for (int64_t unit = begin; unit < end; ++unit) {
    const Walk walk(outer_, unit / blocks_);
    const int64_t first = unit % blocks_ * block_, rows = std::min(block_, rows_ - first);
    if (interleaves_) {
      interleave_bytes(reinterpret_cast<const uint8_t*>(from) + walk.from + first, from_column_,
                       columns_, rows, reinterpret_cast<uint8_t*>(to) + walk.to + first * to_row_);
      continue;
    }
    for (int64_t c = 0; c < columns_; c += block_) {
      const int64_t columns = std::min(block_, columns_ - c);
      char* target = to + (walk.to + first * to_row_ + c) * size;
      const char* source = from + (walk.from + first + c * from_column_) * size;
      by_size(element_, [&]<typename T>() {
        transpose(reinterpret_cast<T*>(target), to_row_, reinterpret_cast<const T*>(source),
                  from_column_, rows, columns);
      });
    }
  }
}

void StridedCopy::run(void* to, const void* from) const {
  char* target = static_cast<char*>(to);
  const char* source = static_cast<const char*>(from);
  parallel_for(0, units_, unit_ns_, [&](int64_t begin, int64_t end) {
    if (mode_ == Mode::kDense) {
      const int64_t first = begin * kDenseChunk;
      const int64_t last = std::min(end * kDenseChunk, columns_ * element_);
      std::memcpy(target + first, source + first, last - first);
    } else if (mode_ == Mode::kTranspose) {
      run_blocks(target, source, begin, end);
    } else {
      run_rows(target, source, begin, end);
    }
  });
}

}  // namespace anymps::cpu
