// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/common/short_rows.h"

#include <cmath>
#include <limits>

#include "drivers/cpu/isa.h"

#define HWY_TARGET_INCLUDE "drivers/cpu/common/short_rows.cc"
#include "drivers/cpu/all_targets.h"

#include "drivers/cpu/common/math-inl.h"
#include "drivers/cpu/common/parts-inl.h"

HWY_BEFORE_NAMESPACE();
namespace anymps::cpu::HWY_NAMESPACE {
namespace {

// A row and what becomes of it are in registers at once.
constexpr size_t kMostVectors = HWY_TARGET <= HWY_AVX3 ? 8 : 4;
constexpr float kInf = std::numeric_limits<float>::infinity();

// kVectors vectors, of which the last has one lane or more.
template <size_t kVectors>
struct Row {
  static constexpr size_t kLanes = hn::MaxLanes(Tag());
  V part[kVectors];

  static HWY_INLINE size_t rest(size_t n) { return n - (kVectors - 1) * kLanes; }
  HWY_INLINE void load(const float* x, size_t n, float fill) {
    const Tag d;
    for (size_t k = 0; k + 1 < kVectors; ++k) part[k] = hn::LoadU(d, x + k * kLanes);
    part[kVectors - 1] = load_part(d, x + (kVectors - 1) * kLanes, rest(n), fill);
  }
  HWY_INLINE void store(float* y, size_t n) const {
    const Tag d;
    for (size_t k = 0; k + 1 < kVectors; ++k) hn::StoreU(part[k], d, y + k * kLanes);
    store_part(part[kVectors - 1], d, y + (kVectors - 1) * kLanes, rest(n));
  }
  // Lanes behind the row become 0.
  HWY_INLINE void clear_rest(size_t n) {
    const Tag d;
    part[kVectors - 1] = hn::IfThenElseZero(hn::FirstN(d, rest(n)), part[kVectors - 1]);
  }
  HWY_INLINE float sum() const {
    V all = part[0];
    for (size_t k = 1; k < kVectors; ++k) all = hn::Add(all, part[k]);
    return hn::GetLane(hn::SumOfLanes(Tag(), all));
  }
  HWY_INLINE float sum_squares() const {
    V all = hn::Mul(part[0], part[0]);
    for (size_t k = 1; k < kVectors; ++k) all = hn::MulAdd(part[k], part[k], all);
    return hn::GetLane(hn::SumOfLanes(Tag(), all));
  }
};

template <bool log>
struct Softmax {
  template <size_t kVectors>
  static void run(const ShortRows& rows) {
    const Tag d;
    const size_t n = rows.length;
    for (int64_t r = 0; r < rows.rows; ++r) {
      Row<kVectors> row;
      row.load(rows.x + r * rows.x_step, n, -kInf);
      V highest = hn::Set(d, -kInf);  // Max gives the second if the first is NaN
      for (const V& part : row.part) highest = hn::Max(part, highest);
      highest = hn::Set(d, hn::GetLane(hn::MaxOfLanes(d, highest)));
      Row<kVectors> powers;
      for (size_t k = 0; k < kVectors; ++k) {
        row.part[k] = hn::Sub(row.part[k], highest);
        powers.part[k] = math::exp(d, row.part[k]);
      }
      powers.clear_rest(n);
      const double sum = powers.sum();
      if (log) {
        const V shift = hn::Set(d, static_cast<float>(std::log(sum)));
        for (V& part : row.part) part = hn::Sub(part, shift);
        row.store(rows.y + r * rows.y_step, n);
      } else {
        const V scale = hn::Set(d, static_cast<float>(1 / sum));
        for (V& part : powers.part) part = hn::Mul(part, scale);
        powers.store(rows.y + r * rows.y_step, n);
      }
    }
  }
};

template <bool centered>
struct Normalize {
  template <size_t kVectors>
  static void run(const ShortRows& rows, double epsilon, const float* gamma, const float* beta) {
    const Tag d;
    const size_t n = rows.length;
    const auto count = static_cast<double>(n);
    Row<kVectors> g, b;
    for (size_t k = 0; k < kVectors; ++k) g.part[k] = hn::Set(d, 1.0f), b.part[k] = hn::Zero(d);
    if (gamma) g.load(gamma, n, 1);
    if (beta) b.load(beta, n, 0);
    for (int64_t r = 0; r < rows.rows; ++r) {
      Row<kVectors> row;
      row.load(rows.x + r * rows.x_step, n, 0);
      if (centered) {
        const V mean = hn::Set(d, static_cast<float>(double{row.sum()} / count));
        for (V& part : row.part) part = hn::Sub(part, mean);
        row.clear_rest(n);
      }
      const double variance = double{row.sum_squares()} / count;
      const V scale = hn::Set(d, static_cast<float>(1 / std::sqrt(variance + epsilon)));
      for (size_t k = 0; k < kVectors; ++k)
        row.part[k] = hn::MulAdd(hn::Mul(row.part[k], scale), g.part[k], b.part[k]);
      row.store(rows.y + r * rows.y_step, n);
    }
  }
};

template <class Op, size_t kVectors, typename... More>
void with_vectors(const ShortRows& rows, More... more) {
  if constexpr (kVectors < kMostVectors)
    if (rows.length > kVectors * hn::Lanes(Tag()))
      return with_vectors<Op, kVectors + 1>(rows, more...);
  Op::template run<kVectors>(rows, more...);
}
template <class Op, typename... More>
void for_length(const ShortRows& rows, More... more) {
  with_vectors<Op, 1>(rows, more...);
}

}  // namespace

ShortRowOps short_row_ops_here() {
  return {static_cast<int64_t>(kMostVectors * hn::Lanes(Tag())), for_length<Softmax<false>>,
          for_length<Softmax<true>>,
          for_length<Normalize<true>, double, const float*, const float*>,
          for_length<Normalize<false>, double, const float*, const float*>};
}

}  // namespace anymps::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anymps::cpu {

HWY_EXPORT(short_row_ops_here);

const ShortRowOps& short_row_ops() {
  static const ShortRowOps ops = (isa(), HWY_DYNAMIC_DISPATCH(short_row_ops_here)());
  return ops;
}

}  // namespace anymps::cpu
#endif
