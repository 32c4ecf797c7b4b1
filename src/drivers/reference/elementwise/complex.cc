// SPDX-License-Identifier: Apache-2.0
// Reference kernels of complex numbers and their parts.
#include "drivers/reference/elementwise/elementwise.h"

namespace anymps {

#define COMPLEX_TO_REAL(name)                                      \
  REFERENCE(name) {                                                \
    dispatch<kComplex>(args.in[0].dtype, [&]<typename T>() {       \
      map_elements<typename T::value_type, T>(args, scalar::name); \
    });                                                            \
  }

ANYMPS_COMPLEX_PARTS(COMPLEX_TO_REAL)

REFERENCE(make_complex) {
  dispatch<kPrecise>(args.in[0].dtype, [&]<typename T>() {
    map_elements<std::complex<T>, T, T>(args, scalar::make_complex);
  });
}

REFERENCE(planar) {
  const View &x = args.in[0], &y = args.out[0];
  const int64_t last = x.rank() - 1;
  dispatch<kComplex>(x.dtype, [&]<typename T>() {
    using Real = typename T::value_type;
    for_each_index(x.shape(), [&](const Shape& index) {
      const T value = x.at<T>(index);
      Shape to = index;
      y.at<Real>(to) = value.real();
      to[last] += x.extent(last);
      y.at<Real>(to) = value.imag();
    });
  });
}

}  // namespace anymps
