// SPDX-License-Identifier: Apache-2.0
// How a number drawn from a beta distribution moves with its first shape, for the gradient of the
// Dirichlet distribution: the derivative of the distribution function to that shape over the
// density. On either side of the mean by a series without cancellation; for large shapes, where
// the series are long, by quadrature of the tail.
#include <algorithm>
#include <cmath>
#include <limits>

#include "semantics/special/quadrature.h"
#include "semantics/special/special_functions.h"

namespace anymps::special {

namespace {

constexpr double kNotANumberHere = std::numeric_limits<double>::quiet_NaN();
constexpr double kEnd = 1e-17;       // terms below this part of a sum end it
constexpr double kLargeTotal = 200;  // from here on quadrature is faster than a series
constexpr double kSmallShape = 20;   // below, the density is not smooth enough for it at that end

// The sum of term(n) * (first + sum of step(k), k < n): terms over the one before are `ratio`.
template <typename Ratio, typename Step>
double weighted_series(double first, Ratio ratio, Step step) {
  double sum = 0, term = 1, weight = first;
  for (double n = 0; n < 1e6; ++n) {
    const double part = term * weight;
    sum += part;
    const double r = ratio(n);
    if (r < 1 && std::abs(part) <= std::abs(sum) * kEnd * (1 - r)) break;
    weight += step(n);
    term *= r;
  }
  return sum;
}

// What is below x, over the density: betainc as a series in x.
double below(double x, double a, double b) {
  const double all = a + b;
  const double sum = weighted_series(
      std::log(x) - digamma(a + 1) + digamma(all),
      [&](double n) { return x * (all + n) / (a + 1 + n); },
      [&](double n) { return 1 / (all + n) - 1 / (a + 1 + n); });
  return -x / a * sum;
}

// The same of what is above, as a series in 1 - x.
double above(double x, double a, double b) {
  const double all = a + b;
  const double sum = weighted_series(
      std::log(x) - digamma(a) + digamma(all),
      [&](double n) { return (1 - x) * (all + n) / (b + 1 + n); },
      [&](double n) { return 1 / (all + n); });
  return x / b * sum;
}

// The mean of ln(t) less its expectation over the tail beyond x, where the density, over that at
// x, falls to nothing.
double tail(double x, double a, double b, bool upper) {
  const double mean = digamma(a) - digamma(a + b), room = upper ? 1 - x : x;
  const auto relative = [&](double distance) {  // the density's logarithm
    const double step = upper ? distance : -distance;
    return (a - 1) * std::log1p(step / x) + (b - 1) * std::log1p(-step / (1 - x));
  };
  const double slope = std::abs((a - 1) / x - (b - 1) / (1 - x));
  const double curve = std::sqrt((a - 1) / (x * x) + (b - 1) / ((1 - x) * (1 - x)));
  double length = std::min(std::min(42 / slope, 9.2 / curve), room);
  while (length < room && relative(length) > -40) length = std::min(length * 1.25, room);
  const double sum = integral(0, length, 12, [&](double distance) {
    const double log_t = std::log(x) + std::log1p((upper ? distance : -distance) / x);
    return (log_t - mean) * std::exp(relative(distance));
  });
  return (upper ? sum : -sum) / (1 - x);
}

}  // namespace

double dirichlet_slope(double x, double shape, double total) {
  const double rest = total - shape;
  if (std::isnan(x) || !(shape > 0) || !(rest >= 0) || x < 0 || x > 1 || std::isinf(total))
    return kNotANumberHere;
  if (x == 0 || rest == 0) return 0;
  if (total < kLargeTotal)
    return x * (total + 2) < shape + 1 ? below(x, shape, rest) : above(x, shape, rest);
  if (x * total < shape)
    return shape < kSmallShape ? below(x, shape, rest) : tail(x, shape, rest, false);
  return rest < kSmallShape ? above(x, shape, rest) : tail(x, shape, rest, true);
}

}  // namespace anymps::special
