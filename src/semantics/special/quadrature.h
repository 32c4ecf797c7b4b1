// SPDX-License-Identifier: Apache-2.0
// Integrals of smooth functions, by Gauss and Legendre's rule in panels of equal length: the tails
// of distributions with large shapes, whose series are long.
#pragma once

#include <iterator>

namespace anymps::special {

// Nodes and weights of degree 20; the other half are their mirror images.
inline constexpr double kNodes[] = {
    0.07652652113349734, 0.22778585114164507, 0.37370608871541955, 0.5108670019508271,
    0.636053680726515,   0.7463319064601508,  0.8391169718222188,  0.912234428251326,
    0.9639719272779138,  0.9931285991850949,
};
inline constexpr double kWeights[] = {
    0.15275338713072584, 0.14917298647260374,  0.14209610931838204, 0.13168863844917664,
    0.11819453196151841, 0.10193011981724044,  0.08327674157670475, 0.06267204833410907,
    0.04060142980038694, 0.017614007139152118,
};

template <typename F>
double integral(double from, double to, int panels, F f) {
  double sum = 0;
  const double half = (to - from) / (2 * panels);
  for (int p = 0; p < panels; ++p) {
    const double middle = from + half * (2 * p + 1);
    for (size_t i = 0; i < std::size(kNodes); ++i)
      sum += kWeights[i] * (f(middle - half * kNodes[i]) + f(middle + half * kNodes[i]));
  }
  return sum * half;
}

}  // namespace anymps::special
