// SPDX-License-Identifier: Apache-2.0
// Compiled once for each instruction set. Tiles of up to six rows and some vectors of columns stay
// in registers while the depth is walked through; what becomes of the sums is done by the row.
#include "drivers/cpu/linear/int_gemm.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "drivers/cpu/isa.h"

#define HWY_TARGET_INCLUDE "drivers/cpu/linear/int_gemm.cc"
#include "drivers/cpu/all_targets.h"

#include "drivers/cpu/common/activation-inl.h"
#include "drivers/cpu/linear/integer/int_words-inl.h"

HWY_BEFORE_NAMESPACE();
namespace anymps::cpu::HWY_NAMESPACE {
namespace {

using D32 = hn::ScalableTag<int32_t>;
using D8 = hn::ScalableTag<uint8_t>;
using I32 = hn::Vec<D32>;

constexpr auto kLanes = static_cast<int64_t>(hn::MaxLanes(D32()));
#if HWY_TARGET <= HWY_AVX3
constexpr size_t kVectors = 4;
#else
constexpr size_t kVectors = 2;  // of 16 registers
#endif
constexpr int64_t kRows = 6;

// What is said of columns, as far as a panel goes: filled up, so that whole vectors can be read.
struct PanelTail {
  alignas(64) int32_t start[kMostIntColumns];
  alignas(64) int32_t factor[2][kMostIntColumns];
  alignas(64) float scale[kMostIntColumns];
  alignas(64) float bias[kMostIntColumns];
  float low = 0, high = 0;  // of bytes
};

template <typename T>
HWY_INLINE void fill_panel(const T* from, int64_t step, int64_t columns, int64_t width, T* to) {
  if (!from) return;
  if (step == 1)
    std::memcpy(to, from, static_cast<size_t>(columns) * sizeof(T));
  else
    std::fill_n(to, columns, *from);
  std::fill(to + columns, to + width, T(0));
}

// Only what finish_row reads is set.
HWY_INLINE void set_panel_tail(const IntProduct& p, PanelTail& t) {
  const int64_t width = (p.columns + kLanes - 1) / kLanes * kLanes;
  fill_panel(p.column_start, 1, p.columns, width, t.start);
  for (size_t i = 0; i < 2; ++i)
    if (p.corrections[i].row) fill_panel(p.corrections[i].column, 1, p.columns, width, t.factor[i]);
  if (!p.tail.by_rows) {
    fill_panel(p.tail.scale, p.tail.scale_step, p.columns, width, t.scale);
    fill_panel(p.tail.bias, 1, p.columns, width, t.bias);
  }
  t.low = p.tail.out == DType::kI8 ? -128.0f : 0.0f;
  t.high = t.low + 255;
}

// Results of a tile straight from registers (IntProduct::direct).
template <size_t N>
class DirectBytes {
 public:
  explicit DirectBytes(const IntProduct& p)
      : p_(p),
        rounded_(p.tail),
        in_order_(N),
        whole_(p.columns == static_cast<int64_t>(N) * kLanes) {}

  // What the sums of rows begin with.
  template <size_t R>
  HWY_INLINE void start(int64_t row, I32 (&sums)[R][N]) const {
    const D32 d;
    for (size_t r = 0; r < R; ++r)
      for (size_t n = 0; n < N; ++n) sums[r][n] = hn::LoadU(d, p_.column_start + n * kLanes);
    const IntCorrection& correction = p_.corrections[0];
    if (!correction.row) return;
    for (size_t r = 0; r < R; ++r) {
      const I32 factor = hn::Set(d, correction.row[row + static_cast<int64_t>(r)]);
      for (size_t n = 0; n < N; ++n)
        sums[r][n] =
            hn::Sub(sums[r][n], hn::Mul(factor, hn::LoadU(d, correction.column + n * kLanes)));
    }
  }

  // Unrolled, so that sums stay in registers.
  template <size_t R, size_t... r>
  HWY_INLINE void store_all(int64_t row, const I32 (&sums)[R][N], std::index_sequence<r...>) const {
    (store(row + static_cast<int64_t>(r), sums[r]), ...);
  }

 private:
  HWY_INLINE void store(int64_t row, const I32 (&sums)[N]) const {
    const D8 d8;
    const Tag df;
    V x[N];
    for (size_t n = 0; n < N; ++n) {
      x[n] = hn::Mul(hn::ConvertTo(df, sums[n]), hn::LoadU(df, p_.tail.scale + n * kLanes));
      if (p_.tail.bias) x[n] = hn::Add(x[n], hn::LoadU(df, p_.tail.bias + n * kLanes));
    }
    hn::Vec<D8> bytes;
    if constexpr (N == 1)
      bytes = rounded_(x[0], x[0]);
    else if constexpr (N == 2)
      bytes = rounded_(x[0], x[1]);
    else
      bytes = rounded_(x[0], x[1], x[2], x[N - 1]);
    bytes = in_order_(bytes);
    auto* y = static_cast<uint8_t*>(p_.y) + row * p_.y_row;
    if (whole_) {
      store_whole(bytes, y);
    } else {
#if HWY_TARGET <= HWY_AVX3
      hn::BlendedStore(bytes, hn::FirstN(d8, static_cast<size_t>(p_.columns)), d8, y);
#else
      uint8_t line[4 * kLanes];
      hn::StoreU(bytes, d8, line);
      std::memcpy(y, line, static_cast<size_t>(p_.columns));
#endif
    }
  }

  // The first N quarters of a vector.
  static HWY_INLINE void store_whole(hn::Vec<D8> bytes, uint8_t* y) {
    const D8 d8;
    const hn::Half<D8> half;
    const hn::Half<decltype(half)> quarter;
    if constexpr (N == 4)
      hn::StoreU(bytes, d8, y);
    else if constexpr (N == 1)
      hn::StoreU(hn::LowerHalf(quarter, hn::LowerHalf(half, bytes)), quarter, y);
    else
      hn::StoreU(hn::LowerHalf(half, bytes), half, y);
    if constexpr (N == 3)
      hn::StoreU(hn::LowerHalf(quarter, hn::UpperHalf(half, bytes)), quarter, y + 2 * kLanes);
  }

  const IntProduct& p_;
  const RoundedBytes<Tag> rounded_;
  const BlocksInOrder<D8> in_order_;
  const bool whole_;
};

// The results of R rows and N vectors of columns, or their sums to `to`, whose rows are
// kMostIntColumns apart.
template <typename Dot, size_t R, size_t N>
HWY_INLINE void int_tile(const IntProduct& p, int64_t run_bytes, const DirectBytes<N>& direct,
                         int64_t row, int32_t* to) {
  const D32 d;
  I32 sums[R][N];
  const uint8_t* a[R];
  for (size_t r = 0; r < R; ++r) {
    const int64_t at = row + static_cast<int64_t>(r);
    a[r] = static_cast<const uint8_t*>(p.a) + (p.a_rows ? p.a_rows[at] : at * p.a_row);
  }
  if (p.direct)
    direct.start(row, sums);
  else
    for (size_t r = 0; r < R; ++r)
      for (size_t n = 0; n < N; ++n) sums[r][n] = hn::Zero(d);
  const auto* b = static_cast<const int32_t*>(p.b);
  for (int64_t run = 0; run < p.runs; ++run) {
    const int64_t begin = p.run_at ? p.run_at[run] : 0, end = begin + run_bytes;
    for (int64_t at = begin; at < end; at += 4, b += N * kLanes) {
      I32 right[N];
      for (size_t n = 0; n < N; ++n) right[n] = hn::LoadU(d, b + n * kLanes);
      for (size_t r = 0; r < R; ++r) {
        int32_t word;
        std::memcpy(&word, a[r] + at, sizeof word);
        const I32 left = hn::Set(d, word);
        for (size_t n = 0; n < N; ++n) sums[r][n] = Dot::add(sums[r][n], left, right[n]);
      }
    }
  }
  if (p.direct) return direct.store_all(row, sums, std::make_index_sequence<R>());
  for (size_t r = 0; r < R; ++r)
    for (size_t n = 0; n < N; ++n) hn::StoreU(sums[r][n], d, to + r * kMostIntColumns + n * kLanes);
}

template <typename T>
HWY_INLINE void store_bytes(I32 whole, T* to) {
  const hn::Rebind<T, D32> d;
  hn::StoreU(hn::DemoteTo(d, whole), d, to);
}

// A function of its own: GCC 12 fails to compile it as a part of the next one under sanitizers.
HWY_NOINLINE V activated(const TileActivation& activation, V x) {
  V tile[1][1] = {{x}};
  activate_tile(Tag(), activation, tile);
  return hn::IfThenElse(hn::Eq(x, x), tile[0][0], x);  // NaN stays
}

// One row of sums to its place in a line of results, `width` of them.
HWY_INLINE void finish_row(const IntProduct& p, const PanelTail& t, int64_t row,
                           const int32_t* sums, int64_t width, void* to) {
  const D32 d;
  const Tag df;
  const IntTail& tail = p.tail;
  const I32 row_start = hn::Set(d, p.row_start ? p.row_start[row] : 0);
  const int32_t *first = p.corrections[0].row, *second = p.corrections[1].row;
  const I32 factor0 = hn::Set(d, first ? first[row] : 0);
  const I32 factor1 = hn::Set(d, second ? second[row] : 0);
  const bool scales = tail.out != DType::kI32, is_signed = tail.out == DType::kI8;
  V scale = hn::Zero(df), bias = hn::Zero(df);
  if (scales && tail.by_rows) {
    scale = hn::Set(df, tail.scale[row * tail.scale_step]);
    if (tail.bias) bias = hn::Set(df, tail.bias[row]);
  }
  const V zero = hn::Set(df, tail.zero), low = hn::Set(df, t.low), high = hn::Set(df, t.high);
  for (int64_t j = 0; j < width; j += kLanes) {
    I32 sum = hn::Add(hn::Load(d, sums + j), row_start);
    if (p.column_start) sum = hn::Add(sum, hn::Load(d, t.start + j));
    if (first) sum = hn::Sub(sum, hn::Mul(factor0, hn::Load(d, t.factor[0] + j)));
    if (second) sum = hn::Sub(sum, hn::Mul(factor1, hn::Load(d, t.factor[1] + j)));
    if (!scales) {
      hn::StoreU(sum, d, static_cast<int32_t*>(to) + j);
      continue;
    }
    if (!tail.by_rows) {
      scale = hn::Load(df, t.scale + j);
      if (tail.bias) bias = hn::Load(df, t.bias + j);
    }
    V y = hn::Mul(hn::ConvertTo(df, sum), scale);
    if (tail.bias) y = hn::Add(y, bias);
    if (tail.activation.kind != Activation::kNone) y = activated(tail.activation, y);
    if (tail.out == DType::kF32) {
      hn::StoreU(y, df, static_cast<float*>(to) + j);
      continue;
    }
    const V step = hn::Add(hn::Round(y), zero);
    const V inside = hn::Min(hn::Max(step, low), high);
    const I32 whole = hn::ConvertTo(d, hn::IfThenElseZero(hn::Eq(step, step), inside));
    if (is_signed)
      store_bytes(whole, static_cast<int8_t*>(to) + j);
    else
      store_bytes(whole, static_cast<uint8_t*>(to) + j);
  }
}

// A line of results that does not fill its vectors, or of which only parts are kept.
void copy_kept(const IntProduct& p, const uint8_t* line, uint8_t* y, size_t size) {
  if (p.line == 0) {
    std::memcpy(y, line, static_cast<size_t>(p.columns) * size);
    return;
  }
  for (int64_t j = 0; j < p.columns;) {
    const int64_t at = p.first + j, in_line = at % p.line;
    const int64_t rest = std::min(p.line - in_line, p.columns - j);
    const int64_t count = std::min(rest, p.kept - in_line);
    if (count > 0)
      std::memcpy(y + static_cast<size_t>(at / p.line * p.kept + in_line) * size,
                  line + static_cast<size_t>(j) * size, static_cast<size_t>(count) * size);
    j += rest;
  }
}

void finish_rows(const IntProduct& p, const PanelTail& t, int64_t row, int64_t rows,
                 const int32_t* sums, int64_t width) {
  const size_t size = size_of(p.tail.out);
  const bool whole = p.columns == width && p.line == 0;
  alignas(64) uint8_t line[kMostIntColumns * sizeof(int32_t)];
  for (int64_t r = 0; r < rows; ++r) {
    auto* y = static_cast<uint8_t*>(p.y) + static_cast<size_t>((row + r) * p.y_row) * size;
    finish_row(p, t, row + r, sums + r * kMostIntColumns, width, whole ? y : line);
    if (!whole) copy_kept(p, line, y, size);
  }
}

template <typename Dot, size_t N>
HWY_NOINLINE void int_panel(const IntProduct& p, const PanelTail& t) {
  alignas(64) int32_t sums[kRows * kMostIntColumns];
  const DirectBytes<N> direct(p);
  const int64_t run_bytes = p.words / p.runs * 4;
  const int64_t tiles = (p.rows + kRows - 1) / kRows;
  for (int64_t tile = 0, row = 0; tile < tiles; ++tile) {
    // Of nearly the same height: a tile of one row reads the panel for little.
    const int64_t rows = p.rows / tiles + (tile < p.rows % tiles ? 1 : 0);
    switch (rows) {
      case 1:
        int_tile<Dot, 1, N>(p, run_bytes, direct, row, sums);
        break;
      case 2:
        int_tile<Dot, 2, N>(p, run_bytes, direct, row, sums);
        break;
      case 3:
        int_tile<Dot, 3, N>(p, run_bytes, direct, row, sums);
        break;
      case 4:
        int_tile<Dot, 4, N>(p, run_bytes, direct, row, sums);
        break;
      case 5:
        int_tile<Dot, 5, N>(p, run_bytes, direct, row, sums);
        break;
      default:
        int_tile<Dot, 6, N>(p, run_bytes, direct, row, sums);
        break;
    }
    if (!p.direct) finish_rows(p, t, row, rows, sums, static_cast<int64_t>(N) * kLanes);
    row += rows;
  }
}

template <typename Dot>
void multiply_with(const IntProduct& p) {
  PanelTail t;
  if (!p.direct) set_panel_tail(p, t);
  switch ((p.columns + kLanes - 1) / kLanes) {
    case 1:
      return int_panel<Dot, 1>(p, t);
#if HWY_TARGET <= HWY_AVX3
    case 2:
      return int_panel<Dot, 2>(p, t);
    case 3:
      return int_panel<Dot, 3>(p, t);
#endif
    default:
      return int_panel<Dot, kVectors>(p, t);
  }
}

void finish_here(const IntProduct& p, const int32_t* sums) {
  PanelTail t;
  set_panel_tail(p, t);
  finish_rows(p, t, 0, p.rows, sums, (p.columns + kLanes - 1) / kLanes * kLanes);
}

void multiply_int_here(const IntPacking& packing, const IntProduct& p) {
#ifdef ANYMPS_INT_QUADS
  if (packing.bytes)
    return p.signed_a ? multiply_with<IntQuads<true>>(p) : multiply_with<IntQuads<false>>(p);
#endif
  (void)packing;
  multiply_with<IntPairs>(p);
}

IntPacking packing_here() { return {false, kLanes, static_cast<int64_t>(kVectors)}; }

}  // namespace
}  // namespace anymps::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anymps::cpu {

ByteBounds byte_bounds(const IntTail& tail) {
  const float low = (tail.out == DType::kI8 ? -128.0f : 0.0f) - tail.zero, high = low + 255;
  const TileActivation& act = tail.activation;
  if (act.kind == Activation::kRelu) return {std::clamp(0.0f, low, high), high};
  if (act.kind == Activation::kClamp)
    return {std::clamp(std::nearbyint(act.alpha), low, high),
            std::clamp(std::nearbyint(act.beta), low, high)};
  return {low, high};
}

bool fits_words(int64_t depth, const float* scale, const float* bias, int64_t count) {
  // A NaN is not below what is allowed either.
  constexpr double kMost = 0x1p30;
  const double most = static_cast<double>(std::min<int64_t>(depth, 1 << 15)) * 255 * 255;
  bool fits = true;
  for (int64_t i = 0; i < count; ++i)
    fits &= std::abs(double{scale[i]}) * most + (bias ? std::abs(double{bias[i]}) : 0) < kMost;
  return fits;
}

HWY_EXPORT(multiply_int_here);
HWY_EXPORT(finish_here);
HWY_EXPORT(packing_here);

IntPacking int_packing_without_vnni() {
  isa();
  return HWY_DYNAMIC_DISPATCH(packing_here)();
}

IntPacking int_packing() {
  static const IntPacking packing = [] {
    IntPacking found = int_packing_without_vnni();
    // A build for one instruction set alone (sanitizers) has no code for it.
    found.bytes = has_vnni() && found.lanes >= 8;
    return found;
  }();
  return packing;
}

void multiply_int(const IntPacking& packing, const IntProduct& product) {
  HWY_DYNAMIC_DISPATCH(multiply_int_here)(packing, product);
}

void finish_int(const IntProduct& product, const int32_t* sums) {
  HWY_DYNAMIC_DISPATCH(finish_here)(product, sums);
}

}  // namespace anymps::cpu
#endif
