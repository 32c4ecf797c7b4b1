// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/learning/optimizer_steps_simd.h"

#include <limits>

#include "drivers/cpu/isa.h"

#define HWY_TARGET_INCLUDE "drivers/cpu/learning/optimizer_steps_simd.cc"
#include "drivers/cpu/all_targets.h"

#include "drivers/cpu/common/runs-inl.h"

HWY_BEFORE_NAMESPACE();
namespace anymps::cpu::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using runs::map;

template <typename A>
struct Steps {
  using D = hn::ScalableTag<A>;
  using V = hn::Vec<D>;

  // The numbers of a run as vectors.
  struct Vectors {
    explicit Vectors(const StepRun<A>& r)
        : sign(set(r.sign)),
          decay(set(r.decay)),
          keep(set(r.keep)),
          rate(set(r.rate)),
          a(set(r.a)),
          a1(set(r.a1)),
          b(set(r.b)),
          b1(set(r.b1)),
          root(set(r.root)),
          epsilon(set(r.epsilon)) {}
    static HWY_INLINE V set(A value) { return hn::Set(D(), value); }
    HWY_INLINE V gradient(V values, V g) const {
      return hn::MulAdd(decay, values, hn::Mul(g, sign));
    }
    V sign, decay, keep, rate, a, a1, b, b1, root, epsilon;
  };
  // Without a decay, values that are not finite must not reach the gradient.
  struct PlainVectors : Vectors {
    using Vectors::Vectors;
    HWY_INLINE V gradient(V, V g) const { return hn::Mul(g, this->sign); }
  };

  static HWY_INLINE V larger(V x, V y) {  // NaN if one is
    return hn::IfThenElse(hn::IsNaN(x), x, hn::Max(x, y));
  }

  template <class N>
  static void sgd_with(const StepRun<A>& r) {
    const N p(r);
    if (!r.new_states[0]) {
      map<2, 1, A>(r.n, {r.values, r.gradient}, {r.new_values}, [=](const V* v, V* to) HWY_ATTR {
        to[0] = hn::NegMulAdd(p.rate, p.gradient(v[0], v[1]), v[0]);
      });
    } else if (!r.states[0]) {
      const V ahead = hn::Set(D(), r.nesterov ? 1 + r.a : A(1));
      map<2, 2, A>(r.n, {r.values, r.gradient}, {r.new_values, r.new_states[0]},
                   [=](const V* v, V* to) HWY_ATTR {
                     to[1] = p.gradient(v[0], v[1]);
                     to[0] = hn::NegMulAdd(p.rate, hn::Mul(to[1], ahead), v[0]);
                   });
    } else if (r.nesterov) {
      map<3, 2, A>(r.n, {r.values, r.gradient, r.states[0]}, {r.new_values, r.new_states[0]},
                   [=](const V* v, V* to) HWY_ATTR {
                     const V g = p.gradient(v[0], v[1]);
                     to[1] = hn::MulAdd(p.a, v[2], hn::Mul(p.a1, g));
                     to[0] = hn::NegMulAdd(p.rate, hn::MulAdd(p.a, to[1], g), v[0]);
                   });
    } else {
      map<3, 2, A>(r.n, {r.values, r.gradient, r.states[0]}, {r.new_values, r.new_states[0]},
                   [=](const V* v, V* to) HWY_ATTR {
                     const V g = p.gradient(v[0], v[1]);
                     to[1] = hn::MulAdd(p.a, v[2], hn::Mul(p.a1, g));
                     to[0] = hn::NegMulAdd(p.rate, to[1], v[0]);
                   });
    }
  }

  template <class N>
  static void adam_with(const StepRun<A>& r) {
    const N p(r);
    if (r.states[2])
      map<5, 4, A>(r.n, {r.values, r.gradient, r.states[0], r.states[1], r.states[2]},
                   {r.new_values, r.new_states[0], r.new_states[1], r.new_states[2]},
                   [=](const V* v, V* to) HWY_ATTR {
                     const V g = p.gradient(v[0], v[1]);
                     to[1] = hn::MulAdd(p.a1, hn::Sub(g, v[2]), v[2]);
                     to[2] = hn::MulAdd(p.b, v[3], hn::Mul(p.b1, hn::Mul(g, g)));
                     to[3] = larger(v[4], to[2]);
                     const V by = hn::MulAdd(hn::Sqrt(to[3]), p.root, p.epsilon);
                     to[0] = hn::NegMulAdd(p.rate, hn::Div(to[1], by), hn::Mul(v[0], p.keep));
                   });
    else
      map<4, 3, A>(r.n, {r.values, r.gradient, r.states[0], r.states[1]},
                   {r.new_values, r.new_states[0], r.new_states[1]},
                   [=](const V* v, V* to) HWY_ATTR {
                     const V g = p.gradient(v[0], v[1]);
                     to[1] = hn::MulAdd(p.a1, hn::Sub(g, v[2]), v[2]);
                     to[2] = hn::MulAdd(p.b, v[3], hn::Mul(p.b1, hn::Mul(g, g)));
                     const V by = hn::MulAdd(hn::Sqrt(to[2]), p.root, p.epsilon);
                     to[0] = hn::NegMulAdd(p.rate, hn::Div(to[1], by), hn::Mul(v[0], p.keep));
                   });
  }

  template <class N>
  static void adagrad_with(const StepRun<A>& r) {
    const N p(r);
    map<3, 2, A>(r.n, {r.values, r.gradient, r.states[0]}, {r.new_values, r.new_states[0]},
                 [=](const V* v, V* to) HWY_ATTR {
                   const V g = p.gradient(v[0], v[1]);
                   to[1] = hn::MulAdd(g, g, v[2]);
                   to[0] =
                       hn::NegMulAdd(p.rate, hn::Div(g, hn::Add(hn::Sqrt(to[1]), p.epsilon)), v[0]);
                 });
  }

  template <class N, bool centered, bool momentum>
  static void rmsprop_of(const StepRun<A>& r) {
    const N p(r);
    const auto step = [=](const V* v, V* to) HWY_ATTR {
      const V g = p.gradient(v[0], v[1]);
      to[1] = hn::MulAdd(p.a, v[2], hn::Mul(p.a1, hn::Mul(g, g)));
      V variance = to[1];
      if (centered) {
        to[2] = hn::MulAdd(p.a1, hn::Sub(g, v[3]), v[3]);
        variance = hn::Sub(to[1], hn::Mul(to[2], to[2]));
      }
      V change = hn::Div(g, hn::Add(hn::Sqrt(variance), p.epsilon));
      constexpr size_t at = centered ? 3 : 2;
      if (momentum) change = to[at] = hn::MulAdd(p.b, v[at + 1], change);
      to[0] = hn::NegMulAdd(p.rate, change, v[0]);
    };
    if constexpr (centered && momentum)
      map<5, 4, A>(r.n, {r.values, r.gradient, r.states[0], r.states[1], r.states[2]},
                   {r.new_values, r.new_states[0], r.new_states[1], r.new_states[2]}, step);
    else if constexpr (centered || momentum)
      map<4, 3, A>(r.n, {r.values, r.gradient, r.states[0], r.states[centered ? 1 : 2]},
                   {r.new_values, r.new_states[0], r.new_states[centered ? 1 : 2]}, step);
    else
      map<3, 2, A>(r.n, {r.values, r.gradient, r.states[0]}, {r.new_values, r.new_states[0]}, step);
  }
  template <class N>
  static void rmsprop_with(const StepRun<A>& r) {
    if (r.states[1] && r.states[2]) return rmsprop_of<N, true, true>(r);
    if (r.states[1]) return rmsprop_of<N, true, false>(r);
    if (r.states[2]) return rmsprop_of<N, false, true>(r);
    rmsprop_of<N, false, false>(r);
  }

  template <class N>
  static void adadelta_with(const StepRun<A>& r) {
    const N p(r);
    map<4, 3, A>(r.n, {r.values, r.gradient, r.states[0], r.states[1]},
                 {r.new_values, r.new_states[0], r.new_states[1]}, [=](const V* v, V* to) HWY_ATTR {
                   const V g = p.gradient(v[0], v[1]);
                   to[1] = hn::MulAdd(p.a, v[2], hn::Mul(p.a1, hn::Mul(g, g)));
                   const V ratio = hn::Div(hn::Sqrt(hn::Add(v[3], p.epsilon)),
                                           hn::Sqrt(hn::Add(to[1], p.epsilon)));
                   const V change = hn::Mul(ratio, g);
                   to[2] = hn::MulAdd(p.a, v[3], hn::Mul(p.a1, hn::Mul(change, change)));
                   to[0] = hn::NegMulAdd(p.rate, change, v[0]);
                 });
  }

#define ANYMPS_STEP(name)                 \
  static void name(const StepRun<A>& r) { \
    if (r.decay == 0)                     \
      name##_with<PlainVectors>(r);       \
    else                                  \
      name##_with<Vectors>(r);            \
  }
  ANYMPS_STEP(sgd)
  ANYMPS_STEP(adam)
  ANYMPS_STEP(adagrad)
  ANYMPS_STEP(rmsprop)
  ANYMPS_STEP(adadelta)
#undef ANYMPS_STEP

  static void lion(const StepRun<A>& r) {
    const Vectors p(r);
    map<3, 2, A>(r.n, {r.values, r.gradient, r.states[0]}, {r.new_values, r.new_states[0]},
                 [=](const V* v, V* to) HWY_ATTR {
                   const V g = hn::Mul(v[1], p.sign);
                   const V u = hn::MulAdd(p.a, v[2], hn::Mul(p.a1, g));
                   const V one = hn::Set(D(), A(1));
                   const V sign = hn::IfThenElse(hn::Eq(u, hn::Zero(D())), u, hn::CopySign(one, u));
                   const V change = hn::IfThenElse(hn::IsNaN(u), u, sign);
                   to[0] = hn::NegMulAdd(p.rate, change, hn::Mul(v[0], p.keep));
                   to[1] = hn::MulAdd(p.b, v[2], hn::Mul(p.b1, g));
                 });
  }

  // x - x is 0 for a number and NaN otherwise.
  static bool unscale(const A* x, A scale, A* y, size_t n) {
    const V s = hn::Set(D(), scale);
    V wrong = hn::Zero(D());
    map<1, 1, A>(n, {x}, {y}, [&wrong, s](const V* v, V* to) HWY_ATTR {
      wrong = hn::Or(wrong, hn::Sub(v[0], v[0]));
      to[0] = hn::Mul(v[0], s);
    });
    return hn::AllTrue(D(), hn::Eq(wrong, hn::Zero(D())));
  }
};

template <typename A>
StepOps<A> step_ops_of() {
  using F = Steps<A>;
  return {F::sgd, F::adam, F::adagrad, F::rmsprop, F::adadelta, F::lion, F::unscale};
}

}  // namespace

TypedOps<StepOps> step_ops_here() { return {step_ops_of<float>(), step_ops_of<double>()}; }

}  // namespace anymps::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anymps::cpu {

HWY_EXPORT(step_ops_here);

const TypedOps<StepOps>& all_step_ops() {
  static const TypedOps<StepOps> ops = (isa(), HWY_DYNAMIC_DISPATCH(step_ops_here)());
  return ops;
}

}  // namespace anymps::cpu
#endif
