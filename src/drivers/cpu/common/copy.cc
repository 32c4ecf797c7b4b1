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
constexpr int64_t kPixels = 4096;           // whose planes are brought together or apart at once

#if defined(__SSE2__)
// Eight times eight elements: pairs of lines are joined by words of 16, 32 and 64 bits.
void transpose_8x8(uint16_t* to, int64_t to_row, const uint16_t* from, int64_t from_column) {
  __m128i a[8], b[8];
  for (int i = 0; i < 8; ++i)
    a[i] = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i * from_column));
  for (int i = 0; i < 4; ++i) {
    b[2 * i] = _mm_unpacklo_epi16(a[2 * i], a[2 * i + 1]);
    b[2 * i + 1] = _mm_unpackhi_epi16(a[2 * i], a[2 * i + 1]);
  }
  for (int i = 0; i < 8; i += 4) {
    a[i] = _mm_unpacklo_epi32(b[i], b[i + 2]);
    a[i + 1] = _mm_unpackhi_epi32(b[i], b[i + 2]);
    a[i + 2] = _mm_unpacklo_epi32(b[i + 1], b[i + 3]);
    a[i + 3] = _mm_unpackhi_epi32(b[i + 1], b[i + 3]);
  }
  for (int i = 0; i < 4; ++i) {
    auto* out = reinterpret_cast<__m128i*>(to + 2 * i * to_row);
    auto* next = reinterpret_cast<__m128i*>(to + (2 * i + 1) * to_row);
    _mm_storeu_si128(out, _mm_unpacklo_epi64(a[i], a[i + 4]));
    _mm_storeu_si128(next, _mm_unpackhi_epi64(a[i], a[i + 4]));
  }
}
#endif

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
  if constexpr (sizeof(T) == 2) {
    for (; r + 8 <= rows; r += 8) {
      int64_t c = 0;
      for (; c + 8 <= columns; c += 8)
        transpose_8x8(to + r * to_row + c, to_row, from + c * from_column + r, from_column);
      for (; c < columns; ++c)
        for (int64_t k = r; k < r + 8; ++k) to[k * to_row + c] = from[c * from_column + k];
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

// Lines of `bytes` each; distances are in bytes too. For a few bytes a call of memcpy takes longer
// than the copy.
template <size_t kBytes>
void copy_fixed(char* to, int64_t to_step, const char* from, int64_t from_step, int64_t count) {
  for (int64_t i = 0; i < count; ++i) std::memcpy(to + i * to_step, from + i * from_step, kBytes);
}
// By two moves that may overlap: kHalf < bytes < 2 * kHalf.
template <size_t kHalf>
void copy_halves(char* to, int64_t to_step, const char* from, int64_t from_step, int64_t count,
                 int64_t bytes) {
  const int64_t second = bytes - static_cast<int64_t>(kHalf);
  for (int64_t i = 0; i < count; ++i, to += to_step, from += from_step) {
    std::memcpy(to, from, kHalf);
    std::memcpy(to + second, from + second, kHalf);
  }
}
void copy_lines(char* to, int64_t to_step, const char* from, int64_t from_step, int64_t count,
                int64_t bytes) {
  switch (bytes) {
    case 1:
      return copy_fixed<1>(to, to_step, from, from_step, count);
    case 2:
      return copy_fixed<2>(to, to_step, from, from_step, count);
    case 3:
      return copy_fixed<3>(to, to_step, from, from_step, count);
    case 4:
      return copy_fixed<4>(to, to_step, from, from_step, count);
    case 8:
      return copy_fixed<8>(to, to_step, from, from_step, count);
    case 12:
      return copy_fixed<12>(to, to_step, from, from_step, count);
    case 16:
      return copy_fixed<16>(to, to_step, from, from_step, count);
    case 32:
      return copy_fixed<32>(to, to_step, from, from_step, count);
    default:
      break;
  }
  if (bytes < 8) return copy_halves<4>(to, to_step, from, from_step, count, bytes);
  if (bytes < 16) return copy_halves<8>(to, to_step, from, from_step, count, bytes);
  if (bytes < 32) return copy_halves<16>(to, to_step, from, from_step, count, bytes);
  if (bytes < 64) return copy_halves<32>(to, to_step, from, from_step, count, bytes);
  for (int64_t i = 0; i < count; ++i) std::memcpy(to + i * to_step, from + i * from_step, bytes);
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
  // How many places from here on lie along the last axis, `most` at most.
  int64_t line(int64_t most) const {
    return index_.empty() ? 1 : std::min(most, loops_.extents.back() - index_.back());
  }
  // Past as many places along the last axis as line() allows.
  void skip(int64_t count) {
    if (index_.empty()) return;
    index_.back() += count - 1;
    to += loops_.strides[0].back() * (count - 1);
    from += loops_.strides[1].back() * (count - 1);
    next();
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
  // Few elements of each of few planes, that go side by side; or each element some times.
  const bool few = element_ <= 8 && columns_ <= kMostPlanes;
  if (to_column_ == 1 && from_column_ != 1 && (few || from_column_ != 0) && columns_ > 1) {
    for (size_t i = outer_.extents.size(); i-- > 0;) {
      if (outer_.strides[1][i] != 1) continue;
      if (from_column_ == 0 && outer_.strides[0][i] != columns_) continue;
      mode_ = Mode::kTranspose;
      rows_ = outer_.extents[i];
      to_row_ = outer_.strides[0][i];
      drop(outer_, i);
      break;
    }
  }
  if (mode_ == Mode::kTranspose) {
    interleaves_ = few && to_row_ == columns_;
    separates_ = !interleaves_ && element_ <= 8 && rows_ > 1 && rows_ <= kMostPlanes &&
                 from_column_ == rows_;
    // A cache line of rows, and as many columns: lines of both sides that are a power of two apart
    // share a few places in the cache, and more of them would drive each other out.
    block_ = interleaves_ || separates_ ? kPixels : std::clamp<int64_t>(64 / element_, 8, 64);
    const int64_t length = separates_ ? columns_ : rows_;
    blocks_ = (length + block_ - 1) / block_;
    units_ = outer_.count() * blocks_;
    unit_ns_ = static_cast<double>(columns_ * rows_) / static_cast<double>(blocks_) * bytes *
               (interleaves_ || separates_ ? 0.1 : 0.15);
  } else {
    units_ = outer_.count();
    const bool dense = to_column_ == 1 && (from_column_ == 1 || from_column_ == 0);
    unit_ns_ = 5 + static_cast<double>(columns_) * (dense ? 0.1 * bytes : 1.0);
  }
}

void StridedCopy::run_rows(char* to, const char* from, int64_t begin, int64_t end) const {
  const int64_t size = element_;
  const int64_t to_line = outer_.last_step(0) * size, from_line = outer_.last_step(1) * size;
  Walk walk(outer_, begin);
  for (int64_t i = begin; i < end;) {
    const int64_t lines = walk.line(end - i);
    char* target = to + walk.to * size;
    const char* source = from + walk.from * size;
    if (to_column_ == 1 && from_column_ == 1) {
      copy_lines(target, to_line, source, from_line, lines, columns_ * size);
    } else {
      for (int64_t k = 0; k < lines; ++k, target += to_line, source += from_line)
        run_row(target, source);
    }
    i += lines;
    walk.skip(lines);
  }
}

void StridedCopy::run_row(char* target, const char* source) const {
  if (to_column_ != 1) {
    by_size(element_, [&]<typename T>() {
      spread(reinterpret_cast<T*>(target), to_column_, reinterpret_cast<const T*>(source),
             from_column_, columns_);
    });
  } else if (from_column_ == 2 && element_ <= 8) {
    take_every_second(element_, source, columns_, target);
  } else {
    gather_tile(target, source, element_, 1, columns_, 0, from_column_);
  }
}

void StridedCopy::run_blocks(char* to, const char* from, int64_t begin, int64_t end) const {
  Walk walk(outer_, begin / blocks_);
  int64_t block = begin % blocks_;
  for (int64_t unit = begin; unit < end; ++unit) {
    run_block(to + walk.to * element_, from + walk.from * element_, block * block_);
    if (++block < blocks_) continue;
    block = 0;
    walk.next();
  }
}

void StridedCopy::run_block(char* to, const char* from, int64_t first) const {
  const int64_t size = element_;
  if (separates_)
    return separate_planes(element_, from + first * from_column_ * size, rows_,
                           std::min(block_, columns_ - first), to + first * size, to_row_);
  const int64_t rows = std::min(block_, rows_ - first);
  to += first * to_row_ * size;
  from += first * size;
  if (interleaves_) return interleave_planes(element_, from, from_column_, columns_, rows, to);
  for (int64_t c = 0; c < columns_; c += block_) {
    const int64_t columns = std::min(block_, columns_ - c);
    by_size(element_, [&]<typename T>() {
      transpose(reinterpret_cast<T*>(to) + c, to_row_,
                reinterpret_cast<const T*>(from) + c * from_column_, from_column_, rows, columns);
    });
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
