// SPDX-License-Identifier: Apache-2.0
// Bessel functions of the first and second kind: those of the C library, with PyTorch's ends.
#include <cmath>
#include <limits>

#include "semantics/special/special_functions.h"

namespace anymps::special {

namespace {

#ifdef _WIN32
double library_j0(double x) { return ::_j0(x); }
double library_j1(double x) { return ::_j1(x); }
double library_y0(double x) { return ::_y0(x); }
double library_y1(double x) { return ::_y1(x); }
#else
double library_j0(double x) { return ::j0(x); }
double library_j1(double x) { return ::j1(x); }
double library_y0(double x) { return ::y0(x); }
double library_y1(double x) { return ::y1(x); }
#endif

double of_positive(double x, double (*function)(double)) {
  if (x == 0) return -std::numeric_limits<double>::infinity();
  return x > 0 ? function(x) : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace

double bessel_j0(double x) { return library_j0(x); }
double bessel_j1(double x) { return library_j1(x); }
double bessel_y0(double x) { return of_positive(x, library_y0); }
double bessel_y1(double x) { return of_positive(x, library_y1); }

double spherical_bessel_j0(double x) {
  if (x == 0) return 1;
  return std::isinf(x) ? 0 : std::sin(x) / x;
}

}  // namespace anymps::special
