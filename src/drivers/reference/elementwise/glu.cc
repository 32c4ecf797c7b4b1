// SPDX-License-Identifier: Apache-2.0
// Reference kernel of the gated linear unit.
#include "drivers/reference/elementwise/elementwise.h"

namespace anymps {

REFERENCE(glu) {
  const View &x = args.in[0], &y = args.out[0];
  const size_t axis = normalize_axis(args.attrs.i("axis"), x.rank(), "glu");
  dispatch<kFloat>(x.dtype, [&]<typename T>() {
    for_each_index(y.shape(), [&](const Shape& at) {
      Shape gate = at;
      gate[axis] += y.shape()[axis];
      const double a = widen(x.at<T>(at)), b = widen(x.at<T>(gate));
      y.at<T>(at) = narrow<T>(a * scalar::sigmoid(b));
    });
  });
}

}  // namespace anymps
