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

#include "drivers/cpu/common/math-inl.h"
#include "drivers/cpu/common/tile_activation.h"

HWY_BEFORE_NAMESPACE();
namespace anymps::cpu {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

template <typename V, size_t R, size_t N, typename Fn>
HWY_INLINE void for_all(V (&tile)[R][N], Fn&& fn) {
  for (size_t r = 0; r < R; ++r)
    for (size_t n = 0; n < N; ++n) tile[r][n] = fn(tile[r][n]);
}

// As many at once as there are, in groups of N.
template <size_t N, typename D, typename V>
HWY_INLINE void gelus_of(D d, V*& vectors, size_t& count) {
  for (; count >= N; count -= N, vectors += N) {
    V x[N];
    for (size_t i = 0; i < N; ++i) x[i] = vectors[i];
    math::gelus(d, x);
    for (size_t i = 0; i < N; ++i) vectors[i] = x[i];
  }
}

template <typename D, typename V>
HWY_INLINE void gelu_apart(D d, V* vectors, size_t count) {
  gelus_of<8>(d, vectors, count);
  gelus_of<4>(d, vectors, count);
  gelus_of<1>(d, vectors, count);
}

// The others, which take so long that a call is nothing.
template <typename D, typename V>
HWY_NOINLINE void activate_apart(D d, const TileActivation& f, V* vectors, size_t count) {
  const V zero = hn::Zero(d), one = hn::Set(d, 1.0f), alpha = hn::Set(d, f.alpha);
  const auto each = [&](auto fn) HWY_ATTR {
    for (size_t i = 0; i < count; ++i) vectors[i] = fn(vectors[i]);
  };
  switch (f.kind) {
    case Activation::kLeakyRelu:
      return each([&](V x)
                      HWY_ATTR { return hn::IfThenElse(hn::Lt(x, zero), hn::Mul(x, alpha), x); });
    case Activation::kElu:
      return each([&](V x) HWY_ATTR {
        return hn::IfThenElse(hn::Lt(x, zero), hn::Mul(alpha, math::expm1(d, x)), x);
      });
    case Activation::kGelu:
      return gelu_apart(d, vectors, count);
    case Activation::kGeluTanh:
      return each([&](V x) HWY_ATTR { return math::gelu_tanh(d, x); });
    case Activation::kSilu:
      return each([&](V x) HWY_ATTR { return hn::Div(x, hn::Add(one, math::exp(d, hn::Neg(x)))); });
    case Activation::kSigmoid:
      return each([&](V x) HWY_ATTR { return math::sigmoid(d, x); });
    case Activation::kTanh:
      return each([&](V x) HWY_ATTR { return math::tanh(d, x); });
    default:
      return;
  }
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

// What activate_tile leaves. Not as a part of it: the tile would have an address, and no registers.
template <typename D, typename V, size_t R, size_t N>
HWY_INLINE void activate_any(D d, const TileActivation& f, V (&tile)[R][N]) {
  V apart[R * N];
  for (size_t i = 0; i < R * N; ++i) apart[i] = tile[i / N][i % N];
  activate_apart(d, f, apart, R * N);
  for (size_t i = 0; i < R * N; ++i) tile[i / N][i % N] = apart[i];
}

}  // namespace HWY_NAMESPACE
}  // namespace anymps::cpu
HWY_AFTER_NAMESPACE();

#endif
