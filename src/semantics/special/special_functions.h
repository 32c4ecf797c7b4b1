// SPDX-License-Identifier: Apache-2.0
// Special functions of mathematics, each under its op's name. Computed in double, with an error of
// some units in the last place away from zeros; poles, ends of domains and infinities are
// PyTorch's.
#pragma once

#include "base/dtype.h"

namespace anymps::special {

// Gamma and its kin (gamma.cc). zeta is Hurwitz's: the sum of (q + k)^-s over k = 0, 1, …
double lgamma(double x);
double digamma(double x);
double zeta(double s, double q);
double polygamma(double x, double n);

// The regularized incomplete gamma functions (incomplete_gamma.cc), and how the lower one changes
// with a.
double igamma(double a, double x);
double igammac(double a, double x);
double igamma_slope(double a, double x);
// How a number drawn from the gamma distribution of a shape moves with the shape: -igamma_slope
// over the density at x.
double standard_gamma_slope(double shape, double x);
// How a part x of a Dirichlet distribution moves with its own shape while the part of its (beta)
// distribution below it stays, over 1 - x (incomplete_beta.cc).
double dirichlet_slope(double x, double shape, double total);

// The error function and the normal distribution (error.cc).
double erfc(double x);
double erfcx(double x);
double erfinv(double x);
double ndtri(double p);
double log_ndtr(double x);
// The place of the normal distribution with q + 1/2 of it below; `tail` is the smaller of the parts
// on its two sides. Both are given, since one does not follow exactly from the other.
double normal_place(double q, double tail);

// Bessel functions (bessel.cc, modified_bessel.cc) and Airy's (airy.cc).
double bessel_j0(double x);
double bessel_j1(double x);
double bessel_y0(double x);
double bessel_y1(double x);
double spherical_bessel_j0(double x);
double i0(double x);
double i0e(double x);
double i1(double x);
double i1e(double x);
double modified_bessel_k0(double x);
double modified_bessel_k1(double x);
double scaled_modified_bessel_k0(double x);
double scaled_modified_bessel_k1(double x);
double airy_ai(double x);

// Entropies and logarithms (entropy.cc).
double entr(double x);
double xlogy(double x, double y);
double xlog1py(double x, double y);
double logit(double x, double eps);  // eps < 0: x is taken as it is
double sinc(double x);

// Orthogonal polynomials of degree n, whose fraction is cut off (polynomials.cc).
double chebyshev_polynomial_t(double x, double n);
double chebyshev_polynomial_u(double x, double n);
double chebyshev_polynomial_v(double x, double n);
double chebyshev_polynomial_w(double x, double n);
double shifted_chebyshev_polynomial_t(double x, double n);
double shifted_chebyshev_polynomial_u(double x, double n);
double shifted_chebyshev_polynomial_v(double x, double n);
double shifted_chebyshev_polynomial_w(double x, double n);
double hermite_polynomial_h(double x, double n);
double hermite_polynomial_he(double x, double n);
double laguerre_polynomial_l(double x, double n);
double legendre_polynomial_p(double x, double n);

}  // namespace anymps::special

// The ops that are one of these functions and nothing more, for drivers to make kernels from, with
// about how many nanoseconds an element takes.
//   UNARY, BINARY, TERNARY: of one, two and three tensors. PARAMETRIC: of one and of the record's
//   number.
#define ANYMPS_SPECIAL_OPS(UNARY, BINARY, TERNARY, PARAMETRIC) \
  UNARY(lgamma, kFloat, 30)                                    \
  UNARY(digamma, kFloat, 50)                                   \
  UNARY(erfc, kFloat, 20)                                      \
  UNARY(erfcx, kFloat, 50)                                     \
  UNARY(erfinv, kFloat, 20)                                    \
  UNARY(ndtri, kFloat, 20)                                     \
  UNARY(log_ndtr, kFloat, 60)                                  \
  UNARY(i0, kFloat, 60)                                        \
  UNARY(i0e, kFloat, 50)                                       \
  UNARY(i1, kFloat, 60)                                        \
  UNARY(i1e, kFloat, 50)                                       \
  UNARY(bessel_j0, kFloat, 50)                                 \
  UNARY(bessel_j1, kFloat, 50)                                 \
  UNARY(bessel_y0, kFloat, 70)                                 \
  UNARY(bessel_y1, kFloat, 70)                                 \
  UNARY(spherical_bessel_j0, kFloat, 15)                       \
  UNARY(modified_bessel_k0, kFloat, 70)                        \
  UNARY(modified_bessel_k1, kFloat, 70)                        \
  UNARY(scaled_modified_bessel_k0, kFloat, 70)                 \
  UNARY(scaled_modified_bessel_k1, kFloat, 70)                 \
  UNARY(airy_ai, kFloat, 80)                                   \
  UNARY(entr, kFloat, 10)                                      \
  UNARY(sinc, kFloat, 15)                                      \
  BINARY(zeta, kFloat, 300)                                    \
  BINARY(igamma, kFloat, 500)                                  \
  BINARY(igammac, kFloat, 500)                                 \
  BINARY(igamma_slope, kFloat, 1000)                           \
  BINARY(standard_gamma_slope, kFloat, 1000)                   \
  BINARY(xlogy, kFloat, 10)                                    \
  BINARY(xlog1py, kFloat, 10)                                  \
  BINARY(chebyshev_polynomial_t, kFloat, 20)                   \
  BINARY(chebyshev_polynomial_u, kFloat, 20)                   \
  BINARY(chebyshev_polynomial_v, kFloat, 20)                   \
  BINARY(chebyshev_polynomial_w, kFloat, 20)                   \
  BINARY(shifted_chebyshev_polynomial_t, kFloat, 20)           \
  BINARY(shifted_chebyshev_polynomial_u, kFloat, 20)           \
  BINARY(shifted_chebyshev_polynomial_v, kFloat, 20)           \
  BINARY(shifted_chebyshev_polynomial_w, kFloat, 20)           \
  BINARY(hermite_polynomial_h, kFloat, 20)                     \
  BINARY(hermite_polynomial_he, kFloat, 20)                    \
  BINARY(laguerre_polynomial_l, kFloat, 20)                    \
  BINARY(legendre_polynomial_p, kFloat, 20)                    \
  TERNARY(dirichlet_slope, kFloat, 2000)                       \
  PARAMETRIC(polygamma, 1)                                     \
  PARAMETRIC(logit, 1)

namespace anymps::scalar {

// As function objects, like those of semantics/scalar_functions.h.
#define UNARY(name, dtypes, ns) \
  inline constexpr auto name = [](double x) { return special::name(x); };
#define BINARY(name, dtypes, ns) \
  inline constexpr auto name = [](double x, double y) { return special::name(x, y); };
#define TERNARY(name, dtypes, ns) \
  inline constexpr auto name = [](double x, double y, double z) { return special::name(x, y, z); };
#define PARAMETRIC(name, attributes) \
  inline constexpr auto name = [](double x, double p) { return special::name(x, p); };
ANYMPS_SPECIAL_OPS(UNARY, BINARY, TERNARY, PARAMETRIC)
#undef UNARY
#undef BINARY
#undef TERNARY
#undef PARAMETRIC

}  // namespace anymps::scalar
