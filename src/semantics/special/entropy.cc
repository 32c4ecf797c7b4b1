// SPDX-License-Identifier: Apache-2.0
// Entropies, logits and sinc: products and quotients with limits where one factor vanishes.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "semantics/special/special_functions.h"

namespace anymps::special {

double entr(double x) {
  if (x > 0 || std::isnan(x)) return -x * std::log(x);
  return x == 0 ? 0 : -std::numeric_limits<double>::infinity();
}

double xlogy(double x, double y) { return x == 0 && !std::isnan(y) ? 0 : x * std::log(y); }

double xlog1py(double x, double y) { return x == 0 && !std::isnan(y) ? 0 : x * std::log1p(y); }

double logit(double x, double eps) {
  if (eps >= 0) {
    if (x < eps) x = eps;
    if (x > 1 - eps) x = 1 - eps;
  }
  // Near 1/2 the logarithm of a quotient near 1 would lose digits.
  if (x > 0.25 && x < 0.75) return 2 * std::atanh(2 * x - 1);
  return std::log(x / (1 - x));
}

double sinc(double x) {
  if (x == 0) return 1;
  // sin(pi x) from the place in the period of 2, so that whole numbers give 0.
  const double place = std::remainder(x, 2.0);
  const double folded = std::abs(place) > 0.5 ? std::copysign(1 - std::abs(place), place) : place;
  return std::sin(std::numbers::pi * folded) / (std::numbers::pi * x);
}

}  // namespace anymps::special
