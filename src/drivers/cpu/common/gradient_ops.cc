// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/common/gradient_ops.h"

#include <cmath>
#include <type_traits>

#include "drivers/cpu/isa.h"

#define HWY_TARGET_INCLUDE "drivers/cpu/common/gradient_ops.cc"
#include "drivers/cpu/all_targets.h"

#include "drivers/cpu/common/math-inl.h"
#include "drivers/cpu/common/runs-inl.h"

HWY_BEFORE_NAMESPACE();
namespace anymps::cpu {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using runs::map;
using runs::sum_up;

template <typename A>
struct Functions {
  using D = hn::ScalableTag<A>;
  using V = hn::Vec<D>;

  static A sum(const A* x, size_t n) {
    A result[1];
    sum_up<1, 1, A>(n, {x}, result, [](const V* v, V* t) HWY_ATTR { t[0] = v[0]; });
    return result[0];
  }
  static A dot(const A* x, const A* y, size_t n) {
    A result[1];
    sum_up<2, 1, A>(n, {x, y}, result,
                    [](const V* v, V* t) HWY_ATTR { t[0] = hn::Mul(v[0], v[1]); });
    return result[0];
  }
  static A sum_centered(const A* x, A mean, size_t n) {
    const V m = hn::Set(D(), mean);
    A result[1];
    sum_up<1, 1, A>(n, {x}, result, [m](const V* v, V* t) HWY_ATTR {
      const V c = hn::Sub(v[0], m);
      t[0] = hn::Mul(c, c);
    });
    return result[0];
  }
  static void sums(const A* dy, const A* x, const A* gamma, A mean, A result[2], size_t n) {
    const V m = hn::Set(D(), mean);
    A both[2];
    if (gamma)
      sum_up<3, 2, A>(n, {dy, x, gamma}, both, [m](const V* v, V* t) HWY_ATTR {
        t[0] = hn::Mul(v[0], v[2]);
        t[1] = hn::Mul(t[0], hn::Sub(v[1], m));
      });
    else
      sum_up<2, 2, A>(n, {dy, x}, both, [m](const V* v, V* t) HWY_ATTR {
        t[0] = v[0];
        t[1] = hn::Mul(v[0], hn::Sub(v[1], m));
      });
    result[0] = both[0];
    result[1] = both[1];
  }
  static void normalize(const A* x, A mean, A scale, const A* gamma, const A* beta, A* y,
                        size_t n) {
    const V m = hn::Set(D(), mean), s = hn::Set(D(), scale);
    if (gamma && beta)
      map<3, 1, A>(n, {x, gamma, beta}, {y}, [m, s](const V* v, V* r) HWY_ATTR {
        r[0] = hn::MulAdd(hn::Mul(hn::Sub(v[0], m), s), v[1], v[2]);
      });
    else if (gamma)
      map<2, 1, A>(n, {x, gamma}, {y}, [m, s](const V* v, V* r) HWY_ATTR {
        r[0] = hn::Mul(hn::Mul(hn::Sub(v[0], m), s), v[1]);
      });
    else if (beta)
      map<2, 1, A>(n, {x, beta}, {y}, [m, s](const V* v, V* r) HWY_ATTR {
        r[0] = hn::MulAdd(hn::Sub(v[0], m), s, v[1]);
      });
    else
      map<1, 1, A>(n, {x}, {y}, [m, s](const V* v, V* r) HWY_ATTR {
        r[0] = hn::Mul(hn::Sub(v[0], m), s);
      });
  }
  static void affine(const A* x, A mean, A scale, A shift, A* y, size_t n) {
    const V m = hn::Set(D(), mean), s = hn::Set(D(), scale), b = hn::Set(D(), shift);
    map<1, 1, A>(n, {x}, {y}, [m, s, b](const V* v, V* r) HWY_ATTR {
      r[0] = hn::MulAdd(hn::Sub(v[0], m), s, b);
    });
  }
  static void combine(const A* dy, const A* x, const A* gamma, A mean, A a, A b, A c, A* dx,
                      size_t n) {
    const V m = hn::Set(D(), mean), va = hn::Set(D(), a), vb = hn::Set(D(), b),
            vc = hn::Set(D(), c);
    if (gamma)
      map<3, 1, A>(n, {dy, x, gamma}, {dx}, [=](const V* v, V* r) HWY_ATTR {
        r[0] = hn::MulAdd(hn::Mul(v[0], v[2]), va, hn::MulAdd(hn::Sub(v[1], m), vb, vc));
      });
    else
      map<2, 1, A>(n, {dy, x}, {dx}, [=](const V* v, V* r) HWY_ATTR {
        r[0] = hn::MulAdd(v[0], va, hn::MulAdd(hn::Sub(v[1], m), vb, vc));
      });
  }
  static void add_parameters(const A* dy, const A* x, A mean, A scale, A* dgamma, A* dbeta,
                             size_t n) {
    const V m = hn::Set(D(), mean), s = hn::Set(D(), scale);
    if (dgamma && dbeta)
      map<4, 2, A>(n, {dy, x, dgamma, dbeta}, {dgamma, dbeta}, [m, s](const V* v, V* r) HWY_ATTR {
        r[0] = hn::MulAdd(hn::Mul(hn::Sub(v[1], m), s), v[0], v[2]);
        r[1] = hn::Add(v[3], v[0]);
      });
    else if (dgamma)
      map<3, 1, A>(n, {dy, x, dgamma}, {dgamma}, [m, s](const V* v, V* r) HWY_ATTR {
        r[0] = hn::MulAdd(hn::Mul(hn::Sub(v[1], m), s), v[0], v[2]);
      });
    else if (dbeta)
      add(dy, dbeta, n);
  }

  static void add(const A* x, A* sum, size_t n) {
    map<2, 1, A>(n, {x, sum}, {sum},
                 [](const V* v, V* r) HWY_ATTR { r[0] = hn::Add(v[1], v[0]); });
  }
  static void add_centered(const A* x, const A* mean, A* sum, size_t n) {
    map<3, 1, A>(n, {x, mean, sum}, {sum}, [](const V* v, V* r) HWY_ATTR {
      const V c = hn::Sub(v[0], v[1]);
      r[0] = hn::MulAdd(c, c, v[2]);
    });
  }
  static void add_sums(const A* dy, const A* x, const A* mean, A* sum, A* moment, size_t n) {
    map<5, 2, A>(n, {dy, x, mean, sum, moment}, {sum, moment}, [](const V* v, V* r) HWY_ATTR {
      r[0] = hn::Add(v[3], v[0]);
      r[1] = hn::MulAdd(v[0], hn::Sub(v[1], v[2]), v[4]);
    });
  }
  static void affine_each(const A* x, const A* mean, const A* scale, const A* shift, A* y,
                          size_t n) {
    map<4, 1, A>(n, {x, mean, scale, shift}, {y}, [](const V* v, V* r) HWY_ATTR {
      r[0] = hn::MulAdd(hn::Sub(v[0], v[1]), v[2], v[3]);
    });
  }
  static void combine_each(const A* dy, const A* x, const A* mean, const A* a, const A* b,
                           const A* c, A* dx, size_t n) {
    map<6, 1, A>(n, {dy, x, mean, a, b, c}, {dx}, [](const V* v, V* r) HWY_ATTR {
      r[0] = hn::MulAdd(v[0], v[3], hn::MulAdd(hn::Sub(v[1], v[2]), v[4], v[5]));
    });
  }

  static void add_products(const A* x, const A* y, A* sum, size_t n) {
    map<3, 1, A>(n, {x, y, sum}, {sum},
                 [](const V* v, V* r) HWY_ATTR { r[0] = hn::MulAdd(v[0], v[1], v[2]); });
  }
  static void softmax_back(const A* dy, const A* y, A dot, A* dx, size_t n) {
    const V s = hn::Set(D(), dot);
    map<2, 1, A>(n, {dy, y}, {dx},
                 [s](const V* v, V* r) HWY_ATTR { r[0] = hn::Mul(hn::Sub(v[0], s), v[1]); });
  }
  static void softmax_back_each(const A* dy, const A* y, const A* dot, A* dx, size_t n) {
    map<3, 1, A>(n, {dy, y, dot}, {dx},
                 [](const V* v, V* r) HWY_ATTR { r[0] = hn::Mul(hn::Sub(v[0], v[2]), v[1]); });
  }
  static void log_softmax_back(const A* dy, const A* y, A sum, A* dx, size_t n) {
    if constexpr (std::is_same_v<A, double>) {
      for (size_t i = 0; i < n; ++i) dx[i] = dy[i] - std::exp(y[i]) * sum;
    } else {
      const V s = hn::Set(D(), sum);
      map<2, 1, A>(n, {dy, y}, {dx}, [s](const V* v, V* r) HWY_ATTR {
        r[0] = hn::NegMulAdd(math::exp(D(), v[1]), s, v[0]);
      });
    }
  }
  static void log_softmax_back_each(const A* dy, const A* y, const A* sum, A* dx, size_t n) {
    if constexpr (std::is_same_v<A, double>) {
      for (size_t i = 0; i < n; ++i) dx[i] = dy[i] - std::exp(y[i]) * sum[i];
    } else {
      map<3, 1, A>(n, {dy, y, sum}, {dx}, [](const V* v, V* r) HWY_ATTR {
        r[0] = hn::NegMulAdd(math::exp(D(), v[1]), v[2], v[0]);
      });
    }
  }
};

template <typename A>
GradientOps<A> gradient_ops_of() {
  using F = Functions<A>;
  return {F::sum,
          F::dot,
          F::sum_centered,
          F::sums,
          F::normalize,
          F::affine,
          F::combine,
          F::add_parameters,
          F::add,
          F::add_centered,
          F::add_sums,
          F::affine_each,
          F::combine_each,
          F::add_products,
          F::softmax_back,
          F::softmax_back_each,
          F::log_softmax_back,
          F::log_softmax_back_each};
}

}  // namespace

GradientOps<float> gradient_ops_f32() { return gradient_ops_of<float>(); }
GradientOps<double> gradient_ops_f64() { return gradient_ops_of<double>(); }

}  // namespace HWY_NAMESPACE
}  // namespace anymps::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anymps::cpu {

HWY_EXPORT(gradient_ops_f32);
HWY_EXPORT(gradient_ops_f64);

template <>
const GradientOps<float>& gradient_ops<float>() {
  static const GradientOps<float> ops = (isa(), HWY_DYNAMIC_DISPATCH(gradient_ops_f32)());
  return ops;
}

template <>
const GradientOps<double>& gradient_ops<double>() {
  static const GradientOps<double> ops = (isa(), HWY_DYNAMIC_DISPATCH(gradient_ops_f64)());
  return ops;
}

}  // namespace anymps::cpu
#endif
