// SPDX-License-Identifier: Apache-2.0
// Orthogonal polynomials by their recurrences, and Chebyshev's within [-1, 1] by angles, so that
// high degrees cost nothing there. A negative degree gives 0, as in PyTorch.
#include <cmath>
#include <limits>
#include <numbers>

#include "semantics/special/special_functions.h"

namespace anymps::special {

namespace {

bool even(double n) { return std::fmod(n, 2) == 0; }

// Recurrences end here: an element must not take forever.
constexpr double kTooHigh = 1e6;

// Runs p[k + 1] = next(k, p[k], p[k - 1]) from p[0] = 1 and p[1] up to degree n. What overflows has
// the sign of its leading term where x lies outside of all roots, else none that is known.
template <typename Next>
double by_recurrence(double x, double n, double first, bool outside, Next next) {
  if (std::isnan(x) || !(n < kTooHigh)) return std::numeric_limits<double>::quiet_NaN();
  n = std::trunc(n);
  if (n < 0) return 0;
  if (n == 0) return 1;
  double before = 1, here = first;
  for (double k = 1; k < n && std::isfinite(here); ++k) {
    const double after = next(k, here, before);
    before = here;
    here = after;
  }
  if (std::isfinite(here)) return here;
  if (!outside && std::isfinite(x)) return std::numeric_limits<double>::quiet_NaN();
  const bool leads_positive = (first > 0) == (x > 0);
  const bool positive = even(n) || (x > 0) == leads_positive;
  return positive ? std::numeric_limits<double>::infinity()
                  : -std::numeric_limits<double>::infinity();
}

// The four kinds differ in their polynomial of degree 1.
double chebyshev_by_recurrence(double x, double n, double first) {
  return by_recurrence(x, n, first, true,
                       [x](double, double p, double q) { return 2 * x * p - q; });
}

// Angles are used from here on: below, recurrences are as fast and more exact.
bool by_angle(double x, double n) { return n > 6 && std::abs(x) < 1 && std::isfinite(n); }

}  // namespace

double chebyshev_polynomial_t(double x, double n) {
  n = std::trunc(n);
  if (by_angle(x, n)) return std::cos(n * std::acos(x));
  if (n > 0 && std::abs(x) == 1) return x > 0 || even(n) ? 1 : -1;
  return chebyshev_by_recurrence(x, n, x);
}

double chebyshev_polynomial_u(double x, double n) {
  n = std::trunc(n);
  if (n > 8 && by_angle(x, n)) {
    const double angle = std::acos(x), sine = std::sin(angle);
    if (sine != 0) return std::sin((n + 1) * angle) / sine;
  }
  if (n > 0 && std::abs(x) == 1) return x > 0 || even(n) ? n + 1 : -(n + 1);
  return chebyshev_by_recurrence(x, n, 2 * x);
}

double chebyshev_polynomial_v(double x, double n) {
  n = std::trunc(n);
  if (n > 8 && by_angle(x, n)) {
    const double half = std::acos(x) / 2, cosine = std::cos(half);
    if (cosine != 0) return std::cos((2 * n + 1) * half) / cosine;
  }
  if (n > 0 && x == 1) return 1;
  if (n > 0 && x == -1) return even(n) ? 2 * n + 1 : -(2 * n + 1);
  return chebyshev_by_recurrence(x, n, 2 * x - 1);
}

double chebyshev_polynomial_w(double x, double n) {
  n = std::trunc(n);
  if (n > 8 && by_angle(x, n)) {
    const double half = std::acos(x) / 2, sine = std::sin(half);
    if (sine != 0) return std::sin((2 * n + 1) * half) / sine;
  }
  if (n > 0 && x == 1) return 2 * n + 1;
  if (n > 0 && x == -1) return even(n) ? 1 : -1;
  return chebyshev_by_recurrence(x, n, 2 * x + 1);
}

double shifted_chebyshev_polynomial_t(double x, double n) {
  return chebyshev_polynomial_t(2 * x - 1, n);
}
double shifted_chebyshev_polynomial_u(double x, double n) {
  return chebyshev_polynomial_u(2 * x - 1, n);
}
double shifted_chebyshev_polynomial_v(double x, double n) {
  return chebyshev_polynomial_v(2 * x - 1, n);
}
double shifted_chebyshev_polynomial_w(double x, double n) {
  return chebyshev_polynomial_w(2 * x - 1, n);
}

double hermite_polynomial_h(double x, double n) {
  return by_recurrence(x, n, 2 * x, false,
                       [x](double k, double p, double q) { return 2 * (x * p - k * q); });
}

double hermite_polynomial_he(double x, double n) {
  return by_recurrence(x, n, x, false, [x](double k, double p, double q) { return x * p - k * q; });
}

double laguerre_polynomial_l(double x, double n) {
  if (x == 0 && n >= 0) return 1;
  return by_recurrence(x, n, 1 - x, false, [x](double k, double p, double q) {
    return ((2 * k + 1 - x) * p - k * q) / (k + 1);
  });
}

double legendre_polynomial_p(double x, double n) {
  if (std::abs(x) == 1 && n >= 0) return x > 0 || even(std::trunc(n)) ? 1 : -1;
  return by_recurrence(x, n, x, true, [x](double k, double p, double q) {
    return ((2 * k + 1) * x * p - k * q) / (k + 1);
  });
}

}  // namespace anymps::special
