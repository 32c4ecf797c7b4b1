// SPDX-License-Identifier: Apache-2.0
// The complementary error function, scaled and not, and the inverses of the error function and of
// the normal distribution.
#include <cmath>
#include <limits>
#include <numbers>

#include "semantics/special/chebyshev.h"
#include "semantics/special/special_functions.h"

namespace anymps::special {

namespace {

// (1 + 2 x) e^(x^2) erfc(x) in (x - 3.75) / (x + 3.75), for x >= 0.
constexpr double kErfcx[] = {
    1.1775789345674017,     -0.004590054580646478,   -0.08424913336651792,
    0.05920993999819189,    -0.026658668435305753,   0.009074997670705265,
    -0.002413163540417608,  0.0004907758365258086,   -6.916973302501207e-05,
    4.13902798607301e-06,   7.74038306619849e-07,    -2.1886401049234397e-07,
    1.076499946567091e-08,  4.521959811218287e-09,   -7.754400208831351e-10,
    -6.318088340886684e-11, 2.86879501093067e-11,    1.9455868545777347e-13,
    -9.65469674843344e-13,  3.25254814814874e-14,    3.3478119482868056e-14,
    -1.864562880419313e-15, -1.2507950530688648e-15, 7.418235256624044e-17,
    5.068148904796111e-17,
};

double polynomial_ratio(const double (&top)[8], const double (&bottom)[8], double r) {
  double above = 0, below = 0;
  for (size_t i = 8; i-- > 0;) {
    above = above * r + top[i];
    below = below * r + bottom[i];
  }
  return above / below;
}

}  // namespace

double erfc(double x) { return std::erfc(x); }

double erfcx(double x) {
  if (x < 0) {
    if (x < -26.7) return std::numeric_limits<double>::infinity();
    const double square = x * x, rest = std::fma(x, x, -square);
    const double power = std::exp(square);
    return 2 * (power + power * rest) - erfcx(-x);
  }
  if (x > 1e8) return std::numbers::inv_sqrtpi / x;
  return chebyshev_sum(kErfcx, (x - 3.75) / (x + 3.75)) / (1 + 2 * x);
}

double erfinv(double x) {
  if (!(std::abs(x) <= 1)) return std::numeric_limits<double>::quiet_NaN();
  if (std::abs(x) < 1e-150) return x / 2 / std::numbers::inv_sqrtpi;
  return normal_place(x / 2, (1 - std::abs(x)) / 2) / std::numbers::sqrt2;
}

double ndtri(double p) {
  if (!(p >= 0 && p <= 1)) return std::numeric_limits<double>::quiet_NaN();
  return normal_place(p - 0.5, p < 0.5 ? p : 1 - p);
}

double log_ndtr(double x) {
  const double z = x / std::numbers::sqrt2;
  if (x < -1) return std::log(erfcx(-z) / 2) - x * x / 2;
  return std::log1p(-std::erfc(z) / 2);
}

// Wichura's algorithm AS 241.
double normal_place(double q, double tail) {
  if (std::abs(q) <= 0.425) {
    static constexpr double kA[8] = {
        3.3871328727963666080, 133.14166789178437745, 1971.5909503065514427, 13731.693765509461125,
        45921.953931549871457, 67265.770927008700853, 33430.575583588128105, 2509.0809287301226727};
    static constexpr double kB[8] = {1.0,
                                     42.313330701600911252,
                                     687.18700749205790830,
                                     5394.1960214247511077,
                                     21213.794301586595867,
                                     39307.895800092710610,
                                     28729.085735721942674,
                                     5226.4952788528545610};
    return q * polynomial_ratio(kA, kB, 0.180625 - q * q);
  }
  if (tail <= 0) return q < 0 ? -INFINITY : INFINITY;
  double r = std::sqrt(-std::log(tail)), value;
  if (r <= 5) {
    static constexpr double kC[8] = {1.42343711074968357734,   4.63033784615654529590,
                                     5.76949722146069140550,   3.64784832476320460504,
                                     1.27045825245236838258,   0.241780725177450611770,
                                     0.0227238449892691845833, 7.74545014278341407640e-4};
    static constexpr double kD[8] = {1.0,
                                     2.05319162663775882187,
                                     1.67638483018380384940,
                                     0.689767334985100004550,
                                     0.148103976427480074590,
                                     0.0151986665636164571966,
                                     5.47593808499534494600e-4,
                                     1.05075007164441684324e-9};
    value = polynomial_ratio(kC, kD, r - 1.6);
  } else {
    static constexpr double kE[8] = {6.65790464350110377720,    5.46378491116411436990,
                                     1.78482653991729133580,    0.296560571828504891230,
                                     0.0265321895265761230930,  1.24266094738807843860e-3,
                                     2.71155556874348757815e-5, 2.01033439929228813265e-7};
    static constexpr double kF[8] = {1.0,
                                     0.599832206555887937690,
                                     0.136929880922735805310,
                                     0.0148753612908506148525,
                                     7.86869131145613259100e-4,
                                     1.84631831751005468180e-5,
                                     1.42151175831644588870e-7,
                                     2.04426310338993978564e-15};
    value = polynomial_ratio(kE, kF, r - 5);
  }
  return q < 0 ? -value : value;
}

}  // namespace anymps::special
