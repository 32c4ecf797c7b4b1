// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/common/gradient_ops.h"

#include <hwy/cache_control.h>

#include <cmath>
#include <type_traits>

#include "drivers/cpu/isa.h"

#define HWY_TARGET_INCLUDE "drivers/cpu/common/gradient_ops.cc"
#include "drivers/cpu/all_targets.h"

#include "drivers/cpu/common/math-inl.h"
#include "drivers/cpu/common/runs-inl.h"

HWY_BEFORE_NAMESPACE();
namespace anymps::cpu::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using runs::map;
using runs::sum_columns;
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
      map<1, 1, A>(n, {x}, {y},
                   [m, s](const V* v, V* r) HWY_ATTR { r[0] = hn::Mul(hn::Sub(v[0], m), s); });
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
    map<2, 1, A>(n, {x, sum}, {sum}, [](const V* v, V* r) HWY_ATTR { r[0] = hn::Add(v[1], v[0]); });
  }
  static void add_rows(const A* const* rows, size_t count, A* sum, size_t n) {
    const D d;
    const size_t lanes = hn::Lanes(d);
    size_t i = 0;
    for (; i + 2 * lanes <= n; i += 2 * lanes) {
      V a = hn::LoadU(d, sum + i), b = hn::LoadU(d, sum + i + lanes);
      for (size_t r = 0; r < count; ++r) {
        a = hn::Add(a, hn::LoadU(d, rows[r] + i));
        b = hn::Add(b, hn::LoadU(d, rows[r] + i + lanes));
      }
      hn::StoreU(a, d, sum + i);
      hn::StoreU(b, d, sum + i + lanes);
    }
    for (; i < n; ++i)
      for (size_t r = 0; r < count; ++r) sum[i] += rows[r][i];
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

  static void column_sum(const A* x, int64_t stride, size_t rows, A* sum, size_t n) {
    sum_columns<1, 1, 1, A>(n, rows, stride, {x}, {x}, {sum},
                            [](const V* v, const V*, V* t) HWY_ATTR { t[0] = v[0]; });
  }
  static void column_dot(const A* x, const A* y, int64_t stride, size_t rows, A* sum, size_t n) {
    sum_columns<2, 1, 1, A>(n, rows, stride, {x, y}, {x}, {sum},
                            [](const V* v, const V*, V* t)
                                HWY_ATTR { t[0] = hn::Mul(v[0], v[1]); });
  }
  static void column_centered(const A* x, const A* mean, int64_t stride, size_t rows, A* sum,
                              size_t n) {
    sum_columns<1, 1, 1, A>(n, rows, stride, {x}, {mean}, {sum},
                            [](const V* v, const V* w, V* t) HWY_ATTR {
                              const V c = hn::Sub(v[0], w[0]);
                              t[0] = hn::Mul(c, c);
                            });
  }
  static void column_sums(const A* dy, const A* x, const A* mean, int64_t stride, size_t rows,
                          A* sum, A* moment, size_t n) {
    sum_columns<2, 1, 2, A>(n, rows, stride, {dy, x}, {mean}, {sum, moment},
                            [](const V* v, const V* w, V* t) HWY_ATTR {
                              t[0] = v[0];
                              t[1] = hn::Mul(v[0], hn::Sub(v[1], w[0]));
                            });
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

  static void max_each(const A* x, A* most, size_t n) {
    // Of Max, the second is the result if one is NaN.
    map<2, 1, A>(n, {x, most}, {most},
                 [](const V* v, V* r) HWY_ATTR { r[0] = hn::Max(v[0], v[1]); });
  }
  static void add_exp_each(const A* x, const A* shift, A* sum, size_t n) {
    if constexpr (std::is_same_v<A, double>) {
      for (size_t i = 0; i < n; ++i) sum[i] += std::exp(x[i] - shift[i]);
    } else {
      map<3, 1, A>(n, {x, shift, sum}, {sum}, [](const V* v, V* r) HWY_ATTR {
        r[0] = hn::Add(v[2], math::exp(D(), hn::Sub(v[0], v[1])));
      });
    }
  }
  static void exp_each(const A* x, const A* shift, const A* factor, A* y, size_t n) {
    if constexpr (std::is_same_v<A, double>) {
      for (size_t i = 0; i < n; ++i) y[i] = std::exp(x[i] - shift[i]) * factor[i];
    } else {
      map<3, 1, A>(n, {x, shift, factor}, {y}, [](const V* v, V* r) HWY_ATTR {
        r[0] = hn::Mul(math::exp(D(), hn::Sub(v[0], v[1])), v[2]);
      });
    }
  }

  static void combine_rows(const typename GradientOps<A>::Rows& p, const A* gamma, A* dgamma,
                           A* dbeta, size_t n) {
    constexpr size_t R = GradientOps<A>::kTogether;
    static_assert(R == 4);
    V mean[R], inv_std[R], b[R], c[R];
    for (size_t k = 0; k < R; ++k) {
      mean[k] = hn::Set(D(), p.mean[k]);
      inv_std[k] = hn::Set(D(), p.inv_std[k]);
      b[k] = hn::Set(D(), p.b[k]);
      c[k] = hn::Set(D(), p.c[k]);
    }
    // The rows that come next follow in memory.
    size_t next = R * n;
    const auto step = [&](const V* v, V g, V& to_gamma, V& to_beta, V* r) HWY_ATTR {
      for (size_t k = 0; k < R; ++k) {
        hwy::Prefetch(p.dy[k] + next);
        hwy::Prefetch(p.x[k] + next);
        const V dy = v[k], distance = hn::Sub(v[R + k], mean[k]);
        r[k] = hn::MulAdd(hn::Mul(dy, g), inv_std[k], hn::MulAdd(distance, b[k], c[k]));
        to_gamma = hn::MulAdd(hn::Mul(distance, inv_std[k]), dy, to_gamma);
        to_beta = hn::Add(to_beta, dy);
      }
      next += hn::Lanes(D());
    };
    const V one = hn::Set(D(), A(1));
    if (gamma)
      map<11, 6, A>(n,
                    {p.dy[0], p.dy[1], p.dy[2], p.dy[3], p.x[0], p.x[1], p.x[2], p.x[3], gamma,
                     dgamma, dbeta},
                    {p.dx[0], p.dx[1], p.dx[2], p.dx[3], dgamma, dbeta},
                    [&](const V* v, V* r) HWY_ATTR {
                      r[4] = v[9];
                      r[5] = v[10];
                      step(v, v[8], r[4], r[5], r);
                    });
    else
      map<10, 6, A>(
          n, {p.dy[0], p.dy[1], p.dy[2], p.dy[3], p.x[0], p.x[1], p.x[2], p.x[3], dgamma, dbeta},
          {p.dx[0], p.dx[1], p.dx[2], p.dx[3], dgamma, dbeta}, [&](const V* v, V* r) HWY_ATTR {
            r[4] = v[8];
            r[5] = v[9];
            step(v, one, r[4], r[5], r);
          });
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
          F::add_rows,
          F::affine_each,
          F::combine_each,
          F::column_sum,
          F::column_dot,
          F::column_centered,
          F::column_sums,
          F::softmax_back,
          F::softmax_back_each,
          F::log_softmax_back,
          F::log_softmax_back_each,
          F::max_each,
          F::add_exp_each,
          F::exp_each,
          F::combine_rows};
}

}  // namespace

TypedOps<GradientOps> gradient_ops_here() {
  return {gradient_ops_of<float>(), gradient_ops_of<double>()};
}

}  // namespace anymps::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anymps::cpu {

HWY_EXPORT(gradient_ops_here);

const TypedOps<GradientOps>& all_gradient_ops() {
  static const TypedOps<GradientOps> ops = (isa(), HWY_DYNAMIC_DISPATCH(gradient_ops_here)());
  return ops;
}

}  // namespace anymps::cpu
#endif
