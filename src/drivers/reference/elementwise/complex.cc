// SPDX-License-Identifier: Apache-2.0
// Reference kernels of complex numbers and their parts.
#include "drivers/reference/elementwise/elementwise.h"

namespace anymps {

#define COMPLEX_TO_REAL(name) \
  REFERENCE(name) { map_elements<float, Complex>(args, scalar::name); }

ANYMPS_COMPLEX_PARTS(COMPLEX_TO_REAL)

REFERENCE(make_complex) { map_elements<Complex, float, float>(args, scalar::make_complex); }

REFERENCE(planar) {
  const View &x = args.in[0], &y = args.out[0];
  const int64_t last = x.rank() - 1;
  for_each_index(x.shape(), [&](const Shape& index) {
    const Complex value = x.at<Complex>(index);
    Shape to = index;
    y.at<float>(to) = value.real();
    to[last] += x.extent(last);
    y.at<float>(to) = value.imag();
  });
}

}  // namespace anymps
