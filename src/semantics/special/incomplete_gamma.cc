// SPDX-License-Identifier: Apache-2.0
// The regularized incomplete gamma functions P(a, x) = igamma and Q = 1 - P = igammac, and the
// derivative of P to a. The smaller of P and Q is always computed itself: by a series to the left
// of a, by a continued fraction to the right, and for large a by quadrature of the tail.
#include <cmath>
#include <limits>
#include <numbers>

#include "semantics/special/quadrature.h"
#include "semantics/special/special_functions.h"

namespace anymps::special {

namespace {

constexpr double kNotANumber = std::numeric_limits<double>::quiet_NaN();
constexpr double kSmallest = 1e-17;  // terms below this part of a sum end it
constexpr double kLargeShape = 100;  // from here on quadrature is faster than the series

// ln(1 + d) - d without the loss of a difference.
double log1p_minus(double d) {
  if (d < -0.4 || d > 0.6) return std::log1p(d) - d;
  const double r = d / (2 + d), square = r * r;
  double series = 0, power = 1;
  for (int k = 3;; k += 2, power *= square) {
    const double term = power / k;
    series += term;
    if (term <= series * kSmallest) break;
  }
  return r * (2 * square * series - d);
}

// zeta(k) - 1 from k = 2 on.
constexpr double kZetaLessOne[] = {
    0.6449340668482264,     0.2020569031595943,     0.08232323371113819,   0.03692775514336993,
    0.01734306198444914,    0.008349277381922827,   0.00407735619794434,   0.0020083928260822143,
    0.0009945751278180853,  0.0004941886041194645,  0.0002460865533080483, 0.00012271334757848915,
    6.124813505870483e-05,  3.058823630702049e-05,  1.528225940865187e-05, 7.637197637899763e-06,
    3.81729326499984e-06,   1.908212716553939e-06,  9.539620338727962e-07, 4.769329867878064e-07,
    2.38450502727733e-07,   1.1921992596531106e-07, 5.960818905125948e-08, 2.980350351465228e-08,
    1.4901554828365043e-08, 7.45071178983543e-09,   3.725334024788457e-09, 1.862659723513049e-09,
};

// ln(gamma(1 + a)) for 0 <= a < 1.5, right beside a for small a.
double lgamma_plus_one(double a) {
  if (a > 0.5) return lgamma(1 + a);
  double sum = 0;
  for (size_t i = std::size(kZetaLessOne); i-- > 0;) {
    const auto k = static_cast<double>(i + 2);
    sum = kZetaLessOne[i] / k - a * sum;
  }
  return a * (1 - std::numbers::egamma) - std::log1p(a) + a * a * sum;
}

// gamma(a) over Stirling's formula, for a >= 50.
double stirling_excess(double a) {
  const double z = 1 / (a * a);
  return std::exp((1.0 / 12 - z * (1.0 / 360 - z * (1.0 / 1260 - z / 1680))) / a);
}

// x^a e^-x / gamma(a + 1).
double head(double a, double x) {
  if (a < kLargeShape) {
    // a + 1 is rounded, which tells where a is large.
    const double gamma = a < 1 ? std::tgamma(a + 1) : std::tgamma(a) * a;
    if (x < 500) return std::pow(x, a) * std::exp(-x) / gamma;
    return std::exp(a * std::log(x) - x - lgamma(a + 1));
  }
  const double density = std::exp(a * log1p_minus((x - a) / a));
  return density / (std::sqrt(2 * std::numbers::pi * a) * stirling_excess(a));
}

// P(a, x) / head.
double left_series(double a, double x) {
  double sum = 1, term = 1;
  for (double n = 1; term > sum * kSmallest; ++n) sum += term *= x / (a + n);
  return sum;
}

// Q(a, x) for small x and a, where 1 - P would lose it.
double right_series(double a, double x) {
  double sum = 0, term = 1;
  for (double n = 1; n < 200; ++n) {
    term *= -x / n;
    const double part = term / (a + n);
    sum += part;
    if (std::abs(part) <= std::abs(sum) * kSmallest) break;
  }
  const double log_power = a * std::log(x) - lgamma_plus_one(a);
  return -std::expm1(log_power) - a * std::exp(log_power) * sum;
}

// Q(a, x) for x > a + 1: Legendre's continued fraction by Lentz's method.
double right_fraction(double a, double x) {
  constexpr double kTiny = 1e-300;
  double b = x + 1 - a, c = 1 / kTiny, d = 1 / b, h = d;
  for (double n = 1; n < 10000; ++n) {
    const double numerator = -n * (n - a);
    b += 2;
    d = numerator * d + b;
    if (std::abs(d) < kTiny) d = kTiny;
    c = b + numerator / c;
    if (std::abs(c) < kTiny) c = kTiny;
    d = 1 / d;
    h *= d * c;
    if (std::abs(d * c - 1) < 1e-16) break;
  }
  return a * head(a, x) * h;
}

// The integral of weight(t) * density(t) over density(x) from x outward: upward where x is above
// the mode of the density with shape a, else downward. The density falls by e^-42 where it ends.
template <typename F>
double tail_over_density(double a, double x, F weight) {
  const double mode = a - 1;
  const auto log_density = [&](double t) { return mode * std::log(t / x) - (t - x); };
  const auto relative = [&](double t) {  // the same for large a, where t is near x
    const double step = (t - x) / x;
    return std::abs(step) < 0.5 ? mode * log1p_minus(step) + (mode - x) * step : log_density(t);
  };
  const double sign = x >= mode ? 1 : -1;
  const double slope = std::abs(x - mode) / x, curve = std::sqrt(std::max(mode, 1.0)) / x;
  double length = std::min(42 / slope, 9.2 / curve);
  if (sign < 0) length = std::min(length, x);
  while (relative(x + sign * length) > -40) {
    if (sign < 0 && length >= x) break;
    length *= 1.25;
    if (sign < 0) length = std::min(length, x);
  }
  const double end = x + sign * length;
  return integral(std::min(x, end), std::max(x, end), 4,
                  [&](double t) { return t <= 0 ? 0 : weight(t) * std::exp(relative(t)); });
}

// The density at x for a >= kLargeShape; below, head gives it.
double gamma_density(double a, double x) { return head(a, x) * a / x; }

struct Parts {
  double lower = 0, upper = 0;
};

Parts parts(double a, double x) {
  if (a >= kLargeShape) {
    const double density = gamma_density(a, x);
    const double tail =
        density == 0 ? 0 : density * tail_over_density(a, x, [](double) { return 1.0; });
    return x >= a - 1 ? Parts{1 - tail, tail} : Parts{tail, 1 - tail};
  }
  const bool small = x <= 1.1 && a < (x <= 0.5 ? -0.4 / std::log(x) : 1.1 * x);
  if (small) {
    const double upper = right_series(a, x);
    return {1 - upper, upper};
  }
  if (x <= 1.1 || x <= a + 1) {
    const double lower = head(a, x) * left_series(a, x);
    return {lower, 1 - lower};
  }
  const double upper = right_fraction(a, x);
  return {1 - upper, upper};
}

bool outside(double a, double x) {
  return std::isnan(a) || std::isnan(x) || a < 0 || x < 0 || (a == 0 && x == 0) ||
         (std::isinf(a) && std::isinf(x));
}

// dP/da over the density at x.
double slope_over_density(double a, double x) {
  const double mean = digamma(a);
  if (a < kLargeShape && x <= std::max(a + 1, 1.5)) {
    // P ln(x) less the same series with digamma(a + n + 1) in each term, times x over a.
    double sum = 0, term = 1, psi = mean;
    const double log_x = std::log(x);
    for (double n = 0; n < 10000; ++n) {
      psi += 1 / (a + n);
      const double part = term * (log_x - psi);
      sum += part;
      term *= x / (a + n + 1);
      if (std::abs(part) <= std::abs(sum) * kSmallest && n > 2) break;
    }
    return sum * x / a;
  }
  // Of Q it is the mean of ln(t) - digamma(a) beyond x; of P the same below it.
  const double tail = tail_over_density(a, x, [&](double t) { return std::log(t) - mean; });
  return x >= a - 1 ? -tail : tail;
}

// Where the functions are not computed; upper is 1 - lower there.
Parts at_edges(double a, double x) {
  if (outside(a, x)) return {kNotANumber, kNotANumber};
  if (a == 0) return {1, 0};
  if (x == 0 || std::isinf(a)) return {0, 1};
  if (std::isinf(x)) return {1, 0};
  return parts(a, x);
}

}  // namespace

double igamma(double a, double x) { return at_edges(a, x).lower; }
double igammac(double a, double x) { return at_edges(a, x).upper; }

double igamma_slope(double a, double x) {
  if (outside(a, x)) return kNotANumber;
  if (a == 0 || x == 0 || std::isinf(a) || std::isinf(x)) return 0;
  const double density = gamma_density(a, x);
  return density == 0 ? 0 : density * slope_over_density(a, x);
}

double standard_gamma_slope(double shape, double x) {
  if (std::isnan(shape) || std::isnan(x) || shape <= 0 || x < 0 || std::isinf(shape) ||
      std::isinf(x))
    return kNotANumber;
  if (x == 0) return 0;
  return -slope_over_density(shape, x);
}

}  // namespace anymps::special
