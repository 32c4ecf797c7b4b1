// SPDX-License-Identifier: Apache-2.0
// The logarithm of the gamma function, its derivatives, and Hurwitz's zeta function, of which those
// are made.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "semantics/special/chebyshev.h"
#include "semantics/special/special_functions.h"

namespace anymps::special {

namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();
constexpr double kUndefined = std::numeric_limits<double>::quiet_NaN();

// The positive root of digamma in two parts, and digamma(x) / (x - root) on [1, 2].
constexpr double kRootHigh = 1.4616321449683622, kRootLow = 9.549995429965697e-17;
constexpr double kDigamma[] = {
    0.983570260441567,     -0.2270640863346444,     0.03336889902393011,    -0.005320077271596548,
    0.0008788656937820505, -0.00014773492650606044, 2.5060543468359146e-05, -4.2721034029993324e-06,
    7.302769272465923e-07, -1.2502886813559594e-07, 2.1425009322359472e-08, -3.673295918565179e-09,
    6.299717236108931e-10, -1.080593028883266e-10,  1.853735192053638e-11,  -3.18023536582553e-12,
    5.456147570322795e-13, -9.360993131036438e-14,  1.606064636295075e-14,  -2.7555431377438815e-15,
    4.727736178601912e-16, -8.11148420346509e-17,   1.391707769474154e-17,  -2.3877901082188625e-18,
};

// The place in its period of 1, exactly.
double fraction_of(double x) { return x - std::floor(x); }

// How far it is from the nearest whole number, exactly: a small negative x has no place before 1.
double from_whole(double x) { return x - std::nearbyint(x); }

// For x > 0: the fit on [1, 2], steps to it from either side, and the series for large x.
double digamma_right(double x) {
  if (x >= 10) {
    const double z = 1 / (x * x);
    const double series =
        z * (1.0 / 12 -
             z * (1.0 / 120 -
                  z * (1.0 / 252 -
                       z * (1.0 / 240 - z * (1.0 / 132 - z * (691.0 / 32760 - z * (1.0 / 12)))))));
    return std::log(x) - 0.5 / x - series;
  }
  double steps = 0;
  for (; x > 2; steps += 1 / x) x -= 1;
  if (x < 1) {
    steps -= 1 / x;
    x += 1;
  }
  const double fit = (x - kRootHigh - kRootLow) * chebyshev_sum(kDigamma, 2 * x - 3);
  return fit + steps;
}

// For q > 0 and s > 1: terms one by one until Euler's and Maclaurin's formula takes the rest.
double zeta_right(double s, double q) {
  static constexpr double kBernoulli[] = {
      // B_2j / (2j)!
      1.0 / 12,
      -1.0 / 720,
      1.0 / 30240,
      -1.0 / 1209600,
      1.0 / 47900160,
      -691.0 / 1307674368000,
      1.0 / 74724249600,
      -3617.0 / 10670622842880000,
      43867.0 / 5109094217170944000,
      -174611.0 / 8.028576626982912e20,
      77683.0 / 1.410110003939180544e22,
      -236364091.0 / 1.6938241367317436695e27,
  };
  const double enough = std::max(10.0, (s + 24) / 3);
  double sum = 0, a = q;
  for (; a < enough; a += 1) {
    const double term = std::pow(a, -s);
    sum += term;
    if (term <= sum * 1e-17) return sum;
  }
  const double power = std::pow(a, -s);
  sum += a * power / (s - 1) + power / 2;
  double factor = s * power / a;
  for (size_t j = 0; j < std::size(kBernoulli); ++j) {
    const double term = kBernoulli[j] * factor;
    sum += term;
    if (std::abs(term) <= std::abs(sum) * 1e-17) break;
    const auto k = static_cast<double>(2 * j);
    factor *= (s + k + 1) * (s + k + 2) / (a * a);
  }
  return sum;
}

}  // namespace

// C's lgamma writes the sign to a global that threads share.
double lgamma(double x) {
#ifdef _WIN32
  return std::lgamma(x);
#else
  int sign = 0;
  return ::lgamma_r(x, &sign);
#endif
}

double digamma(double x) {
  if (x == 0) return std::copysign(kInfinite, -x);
  if (x > 0 || std::isnan(x)) return digamma_right(x);
  const double distance = from_whole(x);
  if (distance == 0 || std::isinf(x)) return kUndefined;
  return digamma_right(1 - x) - std::numbers::pi / std::tan(std::numbers::pi * distance);
}

double zeta(double s, double q) {
  if (std::isnan(s) || std::isnan(q)) return kUndefined;
  if (s == 1) return kInfinite;
  if (s < 1) return kUndefined;
  if (q <= 0) {
    if (q == std::floor(q)) return kInfinite;
    if (s != std::floor(s)) return kUndefined;
    if (std::isinf(s)) return kUndefined;
    // The terms with q + k < 0 are a sum from 1 - place to -q, with the sign of (-1)^s.
    const double place = fraction_of(q);
    const double left = zeta_right(s, std::floor(q) + 1 - q) - zeta_right(s, 1 - q);
    return zeta_right(s, place) + (std::fmod(s, 2) == 0 ? left : -left);
  }
  if (std::isinf(s)) return q > 1 ? 0 : q == 1 ? 1 : kInfinite;
  if (std::isinf(q)) return 0;
  return zeta_right(s, q);
}

double polygamma(double x, double n) {
  if (n == 0) return digamma(x);
  const double sum = zeta(n + 1, x), sign = std::fmod(n, 2) == 0 ? -1 : 1;
  if (n <= 170) return sign * std::tgamma(n + 1) * sum;
  const double size = std::exp(lgamma(n + 1) + std::log(std::abs(sum)));
  return sign * std::copysign(size, sum);
}

}  // namespace anymps::special
