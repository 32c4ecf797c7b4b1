// SPDX-License-Identifier: Apache-2.0
// Eight vectors of sums stay in registers while the axes are walked through.
#include "drivers/cpu/linear/distance_simd.h"

#define HWY_TARGET_INCLUDE "drivers/cpu/linear/distance_simd.cc"
#include "drivers/cpu/all_targets.h"

HWY_BEFORE_NAMESPACE();
namespace anymps::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

namespace {

template <bool squares>
HWY_INLINE void sum_tile(const double* HWY_RESTRICT point, int64_t axes,
                         const double* HWY_RESTRICT tile, double* HWY_RESTRICT sums) {
  const hn::CappedTag<double, 8> d;
  constexpr int64_t kVectors = 8;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t first = 0; first < kDistanceTile; first += kVectors * lanes) {
    hn::Vec<decltype(d)> total[kVectors];
    for (auto& sum : total) sum = hn::Zero(d);
    for (int64_t k = 0; k < axes; ++k) {
      const auto x = hn::Set(d, point[k]);
      const double* others = tile + k * kDistanceTile + first;
      for (int64_t v = 0; v < kVectors; ++v) {
        const auto difference = hn::Sub(x, hn::LoadU(d, others + v * lanes));
        total[v] = squares ? hn::MulAdd(difference, difference, total[v])
                           : hn::Add(hn::Abs(difference), total[v]);
      }
    }
    for (int64_t v = 0; v < kVectors; ++v) hn::StoreU(total[v], d, sums + first + v * lanes);
  }
}

}  // namespace

void sum_distances_here(const double* point, int64_t axes, const double* tile, bool squares,
                        double* sums) {
  squares ? sum_tile<true>(point, axes, tile, sums) : sum_tile<false>(point, axes, tile, sums);
}

}  // namespace anymps::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anymps::cpu {

HWY_EXPORT(sum_distances_here);

void sum_distances(const double* point, int64_t axes, const double* tile, bool squares,
                   double* sums) {
  HWY_DYNAMIC_DISPATCH(sum_distances_here)(point, axes, tile, squares, sums);
}

}  // namespace anymps::cpu
#endif
