// SPDX-License-Identifier: Apache-2.0
// The f32 functions of vector_functions.inc as structs with a function of vectors: for loops over
// tiles (elementwise_simd.cc) and for chains (chain_simd.cc).

// Included once for each instruction set.
#if defined(ANYMPS_VECTOR_FUNCTIONS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef ANYMPS_VECTOR_FUNCTIONS_INL_H
#undef ANYMPS_VECTOR_FUNCTIONS_INL_H
#else
#define ANYMPS_VECTOR_FUNCTIONS_INL_H
#endif

#include <limits>

#include "drivers/cpu/common/math-inl.h"
#include "drivers/cpu/common/special-inl.h"
#include "semantics/activation_formulas.h"

HWY_BEFORE_NAMESPACE();
namespace anymps::cpu::HWY_NAMESPACE {
namespace {

// Attributes as local floats: the compiler then knows that stores do not change them.
struct Params {
  explicit Params(const double* p)
      : a(static_cast<float>(p[0])), b(static_cast<float>(p[1])), c(static_cast<float>(p[2])) {}
  float a, b, c;
};

// On x86 Min and Max return the second argument if either is NaN.
template <class M>
HWY_INLINE V keep_nan(M is_nan, V nan, V other) {
  return hn::IfThenElse(is_nan, nan, other);
}

// NaN stays NaN; max first, then min.
HWY_INLINE V clamp(V x, V low, V high) { return hn::Min(high, hn::Max(low, x)); }

HWY_INLINE V round_half_away(Tag d, V x) {
  const V whole = hn::Trunc(x);
  const V rest = hn::Abs(hn::Sub(x, whole));
  const V step = hn::CopySignToAbs(hn::Set(d, 1.0f), x);
  return hn::IfThenElse(hn::Ge(rest, hn::Set(d, 0.5f)), hn::Add(whole, step), whole);
}

// dx as computed, but where dy is so large that a slope below the numbers of f32 counts; and, for
// functions of results, where y (1 - y) is more than f32 holds.
template <bool of_result = false, class F>
HWY_INLINE V with_extremes(Tag d, V dy, V x, V dx, F scalar) {
  auto good = hn::Lt(hn::Abs(dy), hn::Set(d, 1e20f));
  if (of_result) good = hn::And(good, hn::Lt(hn::Abs(x), hn::Set(d, 1e15f)));
  return math::patch_lanes(
      d, dx, good, [=](float g, float v) { return static_cast<float>(scalar(g, v)); }, dy, x);
}

HWY_INLINE V elu_gradient(Tag d, V dy, V x, float alpha) {
  const V below = hn::Mul(dy, hn::Mul(hn::Set(d, alpha), math::exp(d, x)));
  const V dx = hn::IfThenElse(hn::Gt(x, hn::Zero(d)), dy, below);
  return with_extremes(d, dy, x, dx,
                       [=](float g, float v) { return scalar::elu_gradient(g, v, alpha); });
}

HWY_INLINE V hard_sigmoid_gradient(Tag d, V dy, V x, V alpha, V beta) {
  const V y = hn::Add(hn::Mul(alpha, x), beta);
  const auto inside = hn::And(hn::Gt(y, hn::Zero(d)), hn::Lt(y, hn::Set(d, 1.0f)));
  return hn::IfThenElseZero(inside, hn::Mul(dy, alpha));
}

// The bits of x as a bf16, in the upper halves: to nearest even; NaN keeps its upper bits and
// becomes quiet.
HWY_INLINE hn::Vec<hn::Rebind<uint32_t, Tag>> bf16_bits(V x) {
  const hn::Rebind<uint32_t, Tag> du;
  const auto bits = hn::BitCast(du, x);
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 1));
  const auto rounded = hn::Add(hn::Add(bits, hn::Set(du, 0x7fff)), odd);
  const auto quiet = hn::Or(bits, hn::Set(du, 0x400000));
  return hn::IfThenElse(hn::RebindMask(du, hn::IsNaN(x)), quiet, rounded);
}

// x tanh(log(1 + e^x)) with one exponential: with n = e^x (e^x + 2) it is x n / (n + 2). From 20 on
// the quotient is 1.
HWY_INLINE V mish(Tag d, V x) {
  const V e = math::exp(d, hn::Min(hn::Set(d, 20.0f), x)), two = hn::Set(d, 2.0f);
  const V n = hn::Mul(e, hn::Add(e, two));
  return hn::Mul(x, hn::Div(n, hn::Add(n, two)));
}

// Roots and cubes, which models are full of, without logarithms. Unlike sqrt, pow(-0, 0.5) is 0 and
// pow(-infinity, 0.5) infinity.
HWY_INLINE V power(Tag d, V x, V y) {
  if (hn::AllTrue(d, hn::Eq(hn::Abs(y), hn::Set(d, 0.5f)))) {
    const V inf = hn::Set(d, std::numeric_limits<float>::infinity());
    const V root = hn::IfThenElse(hn::Eq(hn::Abs(x), inf), inf, hn::Sqrt(hn::Add(x, hn::Zero(d))));
    return hn::IfThenElse(hn::Gt(y, hn::Zero(d)), root, hn::Div(hn::Set(d, 1.0f), root));
  }
  if (hn::AllTrue(d, hn::Eq(y, hn::Set(d, 3.0f)))) return hn::Mul(hn::Mul(x, x), x);
  return math::pow(d, x, y);
}

#define SET(value) hn::Set(d, value)
#define UNARY(name, ns, ...)                                                                   \
  struct name##_f {                                                                            \
    static HWY_INLINE V apply([[maybe_unused]] Tag d, V x, [[maybe_unused]] const Params& p) { \
      return __VA_ARGS__;                                                                      \
    }                                                                                          \
  };
#define BINARY(name, ns, ...)                                     \
  struct name##_f {                                               \
    static HWY_INLINE V apply([[maybe_unused]] Tag d, V x, V y,   \
                              [[maybe_unused]] const Params& p) { \
      return __VA_ARGS__;                                         \
    }                                                             \
  };
#include "drivers/cpu/elementwise/vector_functions.inc"
#undef UNARY
#undef BINARY
#undef SET

}  // namespace
}  // namespace anymps::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // ANYMPS_VECTOR_FUNCTIONS_INL_H
