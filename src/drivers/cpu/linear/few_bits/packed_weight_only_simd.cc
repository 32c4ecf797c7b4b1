// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/linear/few_bits/packed_weight_only_simd.h"

#include <algorithm>

#include "drivers/cpu/isa.h"

#define ANYMPS_AVX512_ONLY
#define HWY_TARGET_INCLUDE "drivers/cpu/linear/few_bits/packed_weight_only_simd.cc"
#include "drivers/cpu/all_targets.h"

HWY_BEFORE_NAMESPACE();
namespace anymps::cpu::HWY_NAMESPACE {

#if HWY_TARGET <= HWY_AVX2

namespace {

using FewBitsMask = hn::Mask<Tag>;

#if HWY_TARGET <= HWY_AVX3
constexpr int64_t kFewBitsLanes = 16, kFewBitsVectors = 4;
#else
constexpr int64_t kFewBitsLanes = 8, kFewBitsVectors = 2;
#endif

// What a vector of bytes stands for: numbers of one row of b, or of two.
struct SignedBytes {
  static constexpr int64_t kRows = 1;
  static HWY_INLINE void widen(const uint8_t* from, V (&to)[kRows]) {
    const hn::Rebind<int8_t, Tag> d;
    to[0] =
        hn::ConvertTo(Tag(), hn::PromoteTo(hn::Rebind<int32_t, Tag>(),
                                           hn::LoadU(d, reinterpret_cast<const int8_t*>(from))));
  }
};
struct UnsignedBytes {
  static constexpr int64_t kRows = 1;
  static HWY_INLINE void widen(const uint8_t* from, V (&to)[kRows]) {
    to[0] = hn::ConvertTo(Tag(), hn::PromoteTo(hn::Rebind<int32_t, Tag>(),
                                               hn::LoadU(hn::Rebind<uint8_t, Tag>(), from)));
  }
};
struct HalvesOfBytes {
  static constexpr int64_t kRows = 2;
  static HWY_INLINE void widen(const uint8_t* from, V (&to)[kRows]) {
    const hn::Rebind<int8_t, Tag> d;
    const auto both = hn::PromoteTo(hn::Rebind<int32_t, Tag>(),
                                    hn::LoadU(d, reinterpret_cast<const int8_t*>(from)));
    to[0] = hn::ConvertTo(Tag(), hn::ShiftRight<4>(both));
    to[1] = hn::ConvertTo(Tag(), hn::ShiftRight<28>(hn::ShiftLeft<28>(both)));
  }
};

FewBitsMask columns_left(const FewBitsPanel& p, int64_t column) {
  return hn::FirstN(Tag(),
                    static_cast<size_t>(std::clamp<int64_t>(p.columns - column, 0, kFewBitsLanes)));
}

// N vectors of each row, from `column` on.
template <class Code, size_t N>
HWY_NOINLINE void widen_columns(const FewBitsPanel& p, int64_t column, int64_t begin, int64_t end,
                                float* HWY_RESTRICT to) {
  const Tag d;
  const auto load = [&](const float* from, size_t n) {
    const auto first = static_cast<int64_t>(n) * kFewBitsLanes;
    return hn::MaskedLoad(columns_left(p, column + first), d, from + first);
  };
  const uint8_t* HWY_RESTRICT w = p.w + begin / Code::kRows * p.width + column;
  const int64_t width = p.width;
  to += column;
  for (int64_t k = begin; k < end;) {
    const int64_t at = k / p.group * p.step + column;
    const int64_t group_end = std::min(end, (k / p.group + 1) * p.group);
    V scale[N], zero[N];
    for (size_t n = 0; n < N; ++n) {
      scale[n] = load(p.scales + at, n);
      zero[n] = p.zeros ? load(p.zeros + at, n) : hn::Zero(d);
    }
    for (; k < group_end; k += Code::kRows, w += width, to += Code::kRows * width)
      for (size_t n = 0; n < N; ++n) {
        V wide[Code::kRows];
        Code::widen(w + n * kFewBitsLanes, wide);
        for (int64_t i = 0; i < Code::kRows; ++i)
          hn::StoreU(hn::MulAdd(wide[i], scale[n], zero[n]), d, to + i * width + n * kFewBitsLanes);
      }
  }
}

template <class Code>
void widen_panel(const FewBitsPanel& p, int64_t begin, int64_t end, float* to) {
  constexpr int64_t kWide = kFewBitsVectors * kFewBitsLanes;
  int64_t column = 0;
  for (; column + kWide <= p.width; column += kWide)
    widen_columns<Code, kFewBitsVectors>(p, column, begin, end, to);
  for (; column < p.width; column += kFewBitsLanes)
    widen_columns<Code, 1>(p, column, begin, end, to);
}

// R rows of x and N vectors from `column` on; of the last vector the lanes in `last` count. What is
// added to the weights of a group is the same for all: it multiplies the sum of x.
template <class Code, size_t R, size_t N, bool kZeros>
HWY_NOINLINE void few_bits_tile(const FewBitsPanel& p, const float* x, int64_t depth,
                                int64_t column, float* y, int64_t y_row) {
  const Tag d;
  const FewBitsMask last = columns_left(p, column + (static_cast<int64_t>(N) - 1) * kFewBitsLanes);
  const uint8_t* w = p.w + column;
  V total[R][N];
  for (size_t r = 0; r < R; ++r)
    for (size_t n = 0; n < N; ++n) total[r][n] = hn::Zero(d);
  const float* scales = p.scales + column;
  const float* zeros = kZeros ? p.zeros + column : nullptr;
  for (int64_t k = 0; k < depth; scales += p.step) {
    V sums[R][N], sums_of_x[R];
    for (size_t r = 0; r < R; ++r) {
      for (size_t n = 0; n < N; ++n) sums[r][n] = hn::Zero(d);
      sums_of_x[r] = hn::Zero(d);
    }
    for (const int64_t end = k + p.group; k < end; k += Code::kRows, w += p.width) {
      if constexpr (kZeros)
        for (size_t r = 0; r < R; ++r)
          for (int64_t i = 0; i < Code::kRows; ++i)
            sums_of_x[r] =
                hn::Add(sums_of_x[r], hn::Set(d, x[static_cast<int64_t>(r) * depth + k + i]));
      for (size_t n = 0; n < N; ++n) {
        V wide[Code::kRows];
        Code::widen(w + n * kFewBitsLanes, wide);
        for (size_t r = 0; r < R; ++r)
          for (int64_t i = 0; i < Code::kRows; ++i)
            sums[r][n] = hn::MulAdd(hn::Set(d, x[static_cast<int64_t>(r) * depth + k + i]), wide[i],
                                    sums[r][n]);
      }
    }
    const auto load = [&](const float* from, size_t n) HWY_ATTR {
      const float* at = from + n * kFewBitsLanes;
      return n + 1 == N ? hn::MaskedLoad(last, d, at) : hn::LoadU(d, at);
    };
    for (size_t n = 0; n < N; ++n) {
      const V scale = load(scales, n);
      for (size_t r = 0; r < R; ++r) total[r][n] = hn::MulAdd(scale, sums[r][n], total[r][n]);
      if constexpr (kZeros) {
        const V zero = load(zeros, n);
        for (size_t r = 0; r < R; ++r) total[r][n] = hn::MulAdd(zero, sums_of_x[r], total[r][n]);
      }
    }
    if constexpr (kZeros) zeros += p.step;
  }
  for (size_t r = 0; r < R; ++r) {
    float* to = y + static_cast<int64_t>(r) * y_row + column;
    for (size_t n = 0; n + 1 < N; ++n) hn::StoreU(total[r][n], d, to + n * kFewBitsLanes);
    hn::BlendedStore(total[r][N - 1], last, d, to + (N - 1) * kFewBitsLanes);
  }
}

template <class Code, size_t R, bool kZeros>
void few_bits_columns(const FewBitsPanel& p, const float* x, int64_t depth, float* y,
                      int64_t y_row) {
  constexpr int64_t kWide = kFewBitsVectors * kFewBitsLanes;
  int64_t column = 0;
  for (; column + kWide - kFewBitsLanes < p.columns; column += kWide)
    few_bits_tile<Code, R, kFewBitsVectors, kZeros>(p, x, depth, column, y, y_row);
  for (; column < p.columns; column += kFewBitsLanes)
    few_bits_tile<Code, R, 1, kZeros>(p, x, depth, column, y, y_row);
}

template <class Code, size_t R>
void few_bits_rows(const FewBitsPanel& p, const float* x, int64_t depth, float* y, int64_t y_row) {
  if (p.zeros) return few_bits_columns<Code, R, true>(p, x, depth, y, y_row);
  few_bits_columns<Code, R, false>(p, x, depth, y, y_row);
}

template <class Code>
void multiply_panel(const FewBitsPanel& p, const float* x, int64_t rows, int64_t depth, float* y,
                    int64_t y_row) {
  switch (rows) {
    case 1:
      return few_bits_rows<Code, 1>(p, x, depth, y, y_row);
    case 2:
      return few_bits_rows<Code, 2>(p, x, depth, y, y_row);
    case 3:
      return few_bits_rows<Code, 3>(p, x, depth, y, y_row);
    default:
      return few_bits_rows<Code, 4>(p, x, depth, y, y_row);
  }
}

}  // namespace

void widen_few_bits_here(const FewBitsPanel& p, int64_t begin, int64_t end, float* to) {
  switch (p.code) {
    case FewBitsCode::kSigned:
      return widen_panel<SignedBytes>(p, begin, end, to);
    case FewBitsCode::kUnsigned:
      return widen_panel<UnsignedBytes>(p, begin, end, to);
    case FewBitsCode::kHalves:
      return widen_panel<HalvesOfBytes>(p, begin, end, to);
  }
}

void multiply_few_bits_here(const FewBitsPanel& p, const float* x, int64_t rows, int64_t depth,
                            float* y, int64_t y_row) {
  switch (p.code) {
    case FewBitsCode::kSigned:
      return multiply_panel<SignedBytes>(p, x, rows, depth, y, y_row);
    case FewBitsCode::kUnsigned:
      return multiply_panel<UnsignedBytes>(p, x, rows, depth, y, y_row);
    case FewBitsCode::kHalves:
      return multiply_panel<HalvesOfBytes>(p, x, rows, depth, y, y_row);
  }
}

#else

void widen_few_bits_here(const FewBitsPanel&, int64_t, int64_t, float*) {
  fail(Code::kInternal, "[cpu] weights in few bits: compiled for AVX2 and AVX-512");
}

void multiply_few_bits_here(const FewBitsPanel&, const float*, int64_t, int64_t, float*, int64_t) {
  fail(Code::kInternal, "[cpu] weights in few bits: compiled for AVX2 and AVX-512");
}

#endif

}  // namespace anymps::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anymps::cpu {

HWY_EXPORT(widen_few_bits_here);
HWY_EXPORT(multiply_few_bits_here);

void widen_few_bits(const FewBitsPanel& panel, int64_t begin, int64_t end, float* to) {
  HWY_DYNAMIC_DISPATCH(widen_few_bits_here)(panel, begin, end, to);
}

void multiply_few_bits(const FewBitsPanel& panel, const float* x, int64_t rows, int64_t depth,
                       float* y, int64_t y_row) {
  HWY_DYNAMIC_DISPATCH(multiply_few_bits_here)(panel, x, rows, depth, y, y_row);
}

}  // namespace anymps::cpu
#endif
