// SPDX-License-Identifier: Apache-2.0
// The activations that our own convolutions and products apply to a tile of results in registers.

// Included once for each instruction set.
#if defined(ANYMPS_ACTIVATION_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef ANYMPS_ACTIVATION_INL_H
#undef ANYMPS_ACTIVATION_INL_H
#else
#define ANYMPS_ACTIVATION_INL_H
#endif

#include <hwy/highway.h>

#include "semantics/fused_activation.h"

HWY_BEFORE_NAMESPACE();
namespace anymps::cpu {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

template <typename V, size_t R, size_t N, typename Fn>
HWY_INLINE void for_all(V (&tile)[R][N], Fn&& fn) {
  for (size_t r = 0; r < R; ++r)
    for (size_t n = 0; n < N; ++n) tile[r][n] = fn(tile[r][n]);
}

// Those that tile_has() knows; the others leave the tile as it is.
template <typename D, typename V, size_t R, size_t N>
HWY_INLINE void activate_tile(D d, const TileActivation& f, V (&tile)[R][N]) {
  const V zero = hn::Zero(d), one = hn::Set(d, 1.0f);
  const V alpha = hn::Set(d, f.alpha), beta = hn::Set(d, f.beta);
  switch (f.kind) {
    case Activation::kRelu:
      return for_all(tile, [&](V x) HWY_ATTR { return hn::Max(x, zero); });
    case Activation::kClamp:
      return for_all(tile, [&](V x) HWY_ATTR { return hn::Min(hn::Max(x, alpha), beta); });
    case Activation::kHardSwish: {
      const V sixth = hn::Set(d, 1.0f / 6), half = hn::Set(d, 0.5f);
      return for_all(tile, [&](V x) HWY_ATTR {
        return hn::Mul(x, hn::Min(hn::Max(hn::MulAdd(x, sixth, half), zero), one));
      });
    }
    case Activation::kHardSigmoid:
      return for_all(tile, [&](V x) HWY_ATTR {
        return hn::Min(hn::Max(hn::MulAdd(x, alpha, beta), zero), one);
      });
    default:
      return;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace anymps::cpu
HWY_AFTER_NAMESPACE();

#endif
