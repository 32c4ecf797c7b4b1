// SPDX-License-Identifier: Apache-2.0
// Totals stay in vectors: several of them for a run, so that one need not wait for the other, and
// rows of them for columns, which are walked in the order in which memory lies. How elements are
// joined follows from their number alone, so results are the same with any number of threads.
#include "drivers/cpu/reduction/reduction_simd.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "drivers/cpu/isa.h"
#include "semantics/scalar_functions.h"

#define HWY_TARGET_INCLUDE "drivers/cpu/reduction/reduction_simd.cc"
#include "drivers/cpu/all_targets.h"

HWY_BEFORE_NAMESPACE();
namespace anymps::cpu::HWY_NAMESPACE {
namespace {

// How elements of type T are joined to totals of type L, as vectors and one by one.
template <typename T, Reduction kind, bool propagate_nan>
struct Joining {
  static constexpr bool kExtremum = kind == Reduction::kMax || kind == Reduction::kMin;
  static constexpr bool kMax = kind == Reduction::kMax;
  static constexpr bool kKeepsNan = kExtremum && std::is_floating_point_v<T> && propagate_nan;
  static constexpr bool kPassesNan = kExtremum && std::is_floating_point_v<T> && !propagate_nan;
  using Sum = std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>;
  using L = std::conditional_t<kind == Reduction::kMean && std::is_integral_v<T>, Sum, T>;
  using Element = T;
  using D = hn::ScalableTag<L>;
  using Lanes = hn::Vec<D>;
  static constexpr int64_t kLanes = static_cast<int64_t>(hn::MaxLanes(D()));

  static constexpr L neutral() {
    using Limits = std::numeric_limits<L>;
    if constexpr (kind == Reduction::kMax)
      return Limits::has_infinity ? static_cast<L>(-Limits::infinity()) : Limits::lowest();
    else if constexpr (kind == Reduction::kMin)
      return Limits::has_infinity ? Limits::infinity() : Limits::max();
    else
      return kind == Reduction::kProd ? 1 : 0;
  }

  static HWY_INLINE Lanes load(const T* from) {
    if constexpr (sizeof(T) == sizeof(L))
      return hn::LoadU(D(), from);
    else
      return hn::PromoteTo(D(), hn::LoadU(hn::Rebind<T, D>(), from));
  }
  // What is joined of an element.
  static HWY_INLINE Lanes term(Lanes x) {
    if constexpr (kind == Reduction::kL1 && std::is_signed_v<T>)
      return hn::Abs(x);
    else if constexpr (kind == Reduction::kSumSquare || kind == Reduction::kL2)
      return hn::Mul(x, x);
    else if constexpr (kPassesNan)
      return hn::IfThenElse(hn::IsNaN(x), hn::Set(D(), neutral()), x);
    else
      return x;
  }
  static L term(L x) {
    if constexpr (kind == Reduction::kL1)
      return scalar::abs(x);
    else if constexpr (kind == Reduction::kSumSquare || kind == Reduction::kL2)
      return scalar::square(x);
    else if constexpr (kPassesNan)
      return std::isnan(x) ? neutral() : x;
    else
      return x;
  }

  static HWY_INLINE Lanes join(Lanes a, Lanes b) {
    if constexpr (kExtremum && std::is_floating_point_v<T>) {
      // A NaN stays; where it does not count, it is no term.
      auto takes = kind == Reduction::kMax ? hn::Gt(b, a) : hn::Lt(b, a);
      if constexpr (propagate_nan) takes = hn::Or(takes, hn::IsNaN(b));
      return hn::IfThenElse(takes, b, a);
    } else if constexpr (kExtremum) {
      return kind == Reduction::kMax ? hn::Max(a, b) : hn::Min(a, b);
    } else {
      return kind == Reduction::kProd ? hn::Mul(a, b) : hn::Add(a, b);
    }
  }
  static L join(L a, L b) {
    if constexpr (kind == Reduction::kMax)
      return scalar::max(a, b, propagate_nan);
    else if constexpr (kind == Reduction::kMin)
      return scalar::min(a, b, propagate_nan);
    else
      return kind == Reduction::kProd ? scalar::mul(a, b) : scalar::add(a, b);
  }

  static T finish(L total, int64_t count) {
    if constexpr (kind == Reduction::kMean && std::is_integral_v<T>)
      return count == 0 ? T{0} : static_cast<T>(total / static_cast<L>(count));
    else if constexpr (kind == Reduction::kMean)
      return total / static_cast<T>(count);
    else if constexpr (kind == Reduction::kL2)
      return std::sqrt(total);
    else if constexpr (kind == Reduction::kLogSum)
      return std::log(total);
    else
      return total;
  }
};

template <class J>
void start_totals(void* totals, int64_t count) {
  std::fill_n(static_cast<typename J::L*>(totals), count, J::neutral());
}

template <class J>
void join_totals(void* totals, const void* others, int64_t count) {
  auto* to = static_cast<typename J::L*>(totals);
  const auto* from = static_cast<const typename J::L*>(others);
  for (int64_t i = 0; i < count; ++i) to[i] = J::join(to[i], from[i]);
}

template <class J>
void finish_totals(const void* totals, int64_t n, int64_t count, void* y, int64_t step) {
  const auto* from = static_cast<const typename J::L*>(totals);
  auto* to = static_cast<typename J::Element*>(y);
  for (int64_t i = 0; i < n; ++i) to[i * step] = J::finish(from[i], count);
}

template <class J>
void reduce_run(const void* data, int64_t n, void* total) {
  using L = typename J::L;
  constexpr int64_t kLanes = J::kLanes, kSums = 4;
  const typename J::D d;
  const auto* x = static_cast<const typename J::Element*>(data);
  typename J::Lanes sums[kSums];
  for (auto& sum : sums) sum = hn::Set(d, J::neutral());
  int64_t i = 0;
  if constexpr (J::kKeepsNan) {
    // Extrema and NaN apart: each takes one instruction, where both together take four in a row.
    auto bad = hn::Zero(d);
    for (; i + kSums * kLanes <= n; i += kSums * kLanes)
      for (int64_t k = 0; k < kSums; ++k) {
        const auto value = J::load(x + i + k * kLanes);
        sums[k] = J::kMax ? hn::Max(sums[k], value) : hn::Min(sums[k], value);
        bad = hn::Or(bad, hn::VecFromMask(d, hn::IsNaN(value)));
      }
    const auto nan = hn::Set(d, std::numeric_limits<L>::quiet_NaN());
    sums[0] = hn::IfThenElse(hn::MaskFromVec(bad), nan, sums[0]);
  }
  for (; i + kSums * kLanes <= n; i += kSums * kLanes)
    for (int64_t k = 0; k < kSums; ++k)
      sums[k] = J::join(sums[k], J::term(J::load(x + i + k * kLanes)));
  for (; i + kLanes <= n; i += kLanes) sums[0] = J::join(sums[0], J::term(J::load(x + i)));
  sums[0] = J::join(J::join(sums[0], sums[1]), J::join(sums[2], sums[3]));
  HWY_ALIGN L lanes[kLanes];
  hn::Store(sums[0], d, lanes);
  for (int64_t k = kLanes / 2; k > 0; k /= 2)  // two by two: none waits for all before
    for (int64_t j = 0; j < k; ++j) lanes[j] = J::join(lanes[j], lanes[j + k]);
  L all = lanes[0];
  for (; i < n; ++i) all = J::join(all, J::term(static_cast<L>(x[i])));
  auto* to = static_cast<L*>(total);
  *to = J::join(*to, all);
}

template <class J>
void reduce_columns(const void* data, int64_t step, int64_t rows, int64_t columns, void* totals) {
  using L = typename J::L;
  constexpr int64_t kLanes = J::kLanes;
  const typename J::D d;
  const auto* x = static_cast<const typename J::Element*>(data);
  auto* to = static_cast<L*>(totals);
  const int64_t whole = columns / kLanes * kLanes;
  int64_t r = 0;
  // Four rows at a time: totals are read and written once for them.
  for (; r + 4 <= rows; r += 4, x += 4 * step) {
    for (int64_t c = 0; c < whole; c += kLanes) {
      const auto two = J::join(J::term(J::load(x + c)), J::term(J::load(x + step + c)));
      const auto more =
          J::join(J::term(J::load(x + 2 * step + c)), J::term(J::load(x + 3 * step + c)));
      hn::StoreU(J::join(hn::LoadU(d, to + c), J::join(two, more)), d, to + c);
    }
    for (int64_t c = whole; c < columns; ++c) {
      const auto at = [&](int64_t row) { return J::term(static_cast<L>(x[row * step + c])); };
      to[c] = J::join(to[c], J::join(J::join(at(0), at(1)), J::join(at(2), at(3))));
    }
  }
  for (; r < rows; ++r, x += step) {
    for (int64_t c = 0; c < whole; c += kLanes)
      hn::StoreU(J::join(hn::LoadU(d, to + c), J::term(J::load(x + c))), d, to + c);
    for (int64_t c = whole; c < columns; ++c) to[c] = J::join(to[c], J::term(static_cast<L>(x[c])));
  }
}

template <typename T, Reduction kind, bool propagate_nan = true>
ReductionCode code_of() {
  using J = Joining<T, kind, propagate_nan>;
  return {sizeof(typename J::L), start_totals<J>,   join_totals<J>,
          reduce_run<J>,         reduce_columns<J>, finish_totals<J>};
}

template <typename T>
ReductionCode code_of_kind(Reduction kind, bool propagate_nan) {
  constexpr bool kFloats = std::is_floating_point_v<T>;
  switch (kind) {
    case Reduction::kSum:
      return code_of<T, Reduction::kSum>();
    case Reduction::kMean:
      return code_of<T, Reduction::kMean>();
    case Reduction::kProd:
      return code_of<T, Reduction::kProd>();
    case Reduction::kMax:
      if (kFloats && !propagate_nan) return code_of<T, Reduction::kMax, !kFloats>();
      return code_of<T, Reduction::kMax>();
    case Reduction::kMin:
      if (kFloats && !propagate_nan) return code_of<T, Reduction::kMin, !kFloats>();
      return code_of<T, Reduction::kMin>();
    case Reduction::kL1:
      return code_of<T, Reduction::kL1>();
    case Reduction::kSumSquare:
      return code_of<T, Reduction::kSumSquare>();
    case Reduction::kL2:  // of integers: in double
      if constexpr (kFloats) return code_of<T, Reduction::kL2>();
      return {};
    case Reduction::kLogSum:
      if constexpr (kFloats) return code_of<T, Reduction::kLogSum>();
      return {};
    default:
      return {};
  }
}

ReductionCode reduction_code_here(DType dtype, Reduction kind, bool propagate_nan) {
  if (!contains(kVectorReduction, dtype)) return {};
  return dispatch<kVectorReduction>(
      dtype, [&]<typename T>() { return code_of_kind<T>(kind, propagate_nan); });
}

template <typename T, bool max>
int64_t find_extremum(const void* data, int64_t n) {
  using J = Joining<T, max ? Reduction::kMax : Reduction::kMin, true>;
  const hn::ScalableTag<T> d;
  T best = J::neutral();
  reduce_run<J>(data, n, &best);
  const auto* x = static_cast<const T*>(data);
  const bool nan = scalar::is_nan_value(best);
  const auto wanted = hn::Set(d, best);
  int64_t i = 0;
  for (; i + J::kLanes <= n; i += J::kLanes) {
    const auto value = hn::LoadU(d, x + i);
    auto hit = hn::Eq(value, wanted);
    if constexpr (std::is_floating_point_v<T>)
      if (nan) hit = hn::IsNaN(value);
    if (const intptr_t first = hn::FindFirstTrue(d, hit); first >= 0) return i + first;
  }
  while (i + 1 < n && !(nan ? scalar::is_nan_value(x[i]) : x[i] == best)) ++i;
  return i;
}

FindExtremum find_extremum_here(DType dtype, bool max) {
  if (!contains(kVectorReduction, dtype)) return nullptr;
  return dispatch<kVectorReduction>(dtype, [&]<typename T>() -> FindExtremum {
    return max ? find_extremum<T, true> : find_extremum<T, false>;
  });
}

}  // namespace
}  // namespace anymps::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anymps::cpu {

HWY_EXPORT(reduction_code_here);
HWY_EXPORT(find_extremum_here);

ReductionCode reduction_code(DType dtype, Reduction kind, bool propagate_nan) {
  isa();
  return HWY_DYNAMIC_DISPATCH(reduction_code_here)(dtype, kind, propagate_nan);
}

FindExtremum find_extremum_code(DType dtype, bool max) {
  isa();
  return HWY_DYNAMIC_DISPATCH(find_extremum_here)(dtype, max);
}

}  // namespace anymps::cpu
#endif
