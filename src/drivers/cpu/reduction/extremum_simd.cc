// SPDX-License-Identifier: Apache-2.0
// Rows are read in the order in which they lie, four at a time: the best of each column and its
// place stay in the L1 cache.
#include "drivers/cpu/reduction/extremum_simd.h"

#include <limits>
#include <type_traits>

#include "drivers/cpu/isa.h"

#define HWY_TARGET_INCLUDE "drivers/cpu/reduction/extremum_simd.cc"
#include "drivers/cpu/all_targets.h"

#include "drivers/cpu/common/parts-inl.h"

HWY_BEFORE_NAMESPACE();
namespace anymps::cpu::HWY_NAMESPACE {
namespace {

template <typename T, bool max, bool last>
struct ColumnSearch {
  using D = hn::ScalableTag<T>;
  using Places = hn::RebindToSigned<D>;
  using Index = hn::TFromD<Places>;
  using V = hn::Vec<D>;
  static constexpr int64_t kLanes = static_cast<int64_t>(hn::MaxLanes(D()));

  // Whether x, which comes later, takes the place of `best`.
  static HWY_INLINE hn::Mask<D> takes(V x, V best) {
    if constexpr (!std::is_floating_point_v<T>) {
      const auto wins = max == last ? hn::Lt(x, best) : hn::Lt(best, x);
      return last ? hn::Not(wins) : wins;
    } else if constexpr (last) {
      const auto stays = max ? hn::Lt(x, best) : hn::Lt(best, x);
      const auto nan_stays = hn::AndNot(hn::IsNaN(x), hn::IsNaN(best));
      return hn::Not(hn::Or(stays, nan_stays));
    } else {
      // Not below or equal: above, or one of both is a NaN.
      const auto stays = max ? hn::Le(x, best) : hn::Le(best, x);
      return hn::Not(hn::Or(stays, hn::IsNaN(best)));
    }
  }

  template <int64_t kRows>
  static HWY_INLINE void join(const T* x, int64_t step, int64_t at, T* best, Index* places) {
    const D d;
    const Places dp;
    V all = hn::Load(d, best);
    auto where = hn::Load(dp, places);
    for (int64_t r = 0; r < kRows; ++r) {
      const V value = hn::LoadU(d, x + r * step);
      const auto better = takes(value, all);
      all = hn::IfThenElse(better, value, all);
      where = hn::IfThenElse(hn::RebindMask(dp, better), hn::Set(dp, static_cast<Index>(at + r)),
                             where);
    }
    hn::Store(all, d, best);
    hn::Store(where, dp, places);
  }

  static int64_t find(const void* data, int64_t columns, int64_t n, int64_t step, int32_t* places) {
    const D d;
    const Places dp;
    HWY_ALIGN T best[kExtremumColumns];
    HWY_ALIGN Index where[kExtremumColumns];
    const T* x = static_cast<const T*>(data);
    const int64_t whole = columns / kLanes * kLanes;
    for (int64_t c = 0; c < whole; c += kLanes) {
      hn::Store(hn::LoadU(d, x + c), d, best + c);
      hn::Store(hn::Zero(dp), dp, where + c);
    }
    int64_t i = 1;
    for (; i + 4 <= n; i += 4)
      for (int64_t c = 0; c < whole; c += kLanes)
        join<4>(x + i * step + c, step, i, best + c, where + c);
    for (; i < n; ++i)
      for (int64_t c = 0; c < whole; c += kLanes)
        join<1>(x + i * step + c, step, i, best + c, where + c);
    for (int64_t c = 0; c < whole; ++c) places[c] = static_cast<int32_t>(where[c]);
    return whole;
  }
};

// Short lines one after the other, without a call for each.
template <bool max>
void find_in_rows(const float* x, int64_t x_step, int64_t rows, int64_t n, int64_t* y,
                  int64_t y_step) {
  const Tag d;
  constexpr int64_t kLanes = static_cast<int64_t>(hn::MaxLanes(Tag()));
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const auto part = [&](const float* line, int64_t i) HWY_ATTR {
    const auto left = static_cast<size_t>(n - i);
    return n - i < kLanes ? load_part(d, line + i, left, max ? -kInf : kInf)
                          : hn::LoadU(d, line + i);
  };
  for (int64_t r = 0; r < rows; ++r, x += x_step) {
    V best = hn::Set(d, max ? -kInf : kInf);
    auto nan = hn::IsNaN(best);
    for (int64_t i = 0; i < n; i += kLanes) {
      const V value = part(x, i);  // Max and Min give the second if the first is a NaN
      best = max ? hn::Max(value, best) : hn::Min(value, best);
      nan = hn::Or(nan, hn::IsNaN(value));
    }
    const bool any = !hn::AllFalse(d, nan);
    best = max ? hn::MaxOfLanes(d, best) : hn::MinOfLanes(d, best);
    for (int64_t i = 0; i < n; i += kLanes) {
      const V value = part(x, i);
      const auto hit = any ? hn::IsNaN(value) : hn::Eq(value, best);
      if (const intptr_t first = hn::FindFirstTrue(d, hit); first >= 0) {
        y[r * y_step] = i + first;
        break;
      }
    }
  }
}

FindInRows find_in_rows_here(bool max) { return max ? find_in_rows<true> : find_in_rows<false>; }

FindColumns find_columns_here(DType dtype, bool max, bool last) {
  if (!contains(kVectorExtremum, dtype)) return nullptr;
  return dispatch<kVectorExtremum>(dtype, [&]<typename T>() -> FindColumns {
    if (max) return last ? ColumnSearch<T, true, true>::find : ColumnSearch<T, true, false>::find;
    return last ? ColumnSearch<T, false, true>::find : ColumnSearch<T, false, false>::find;
  });
}

}  // namespace
}  // namespace anymps::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anymps::cpu {

HWY_EXPORT(find_columns_here);
HWY_EXPORT(find_in_rows_here);

FindColumns find_columns_code(DType dtype, bool max, bool last) {
  isa();
  return HWY_DYNAMIC_DISPATCH(find_columns_here)(dtype, max, last);
}

FindInRows find_in_rows_code(bool max) {
  isa();
  return HWY_DYNAMIC_DISPATCH(find_in_rows_here)(max);
}

}  // namespace anymps::cpu
#endif
