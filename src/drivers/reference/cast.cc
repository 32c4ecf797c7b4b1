// SPDX-License-Identifier: Apache-2.0
// Reference kernel of conversions between element types.
#include "drivers/reference/elementwise.h"

namespace anymps {

REFERENCE(cast) {
  const View &in = args.in[0], &out = args.out[0];
  dispatch<kAny>(in.dtype, [&]<typename From>() {
    dispatch<kAny>(out.dtype, [&]<typename To>() {
      for_each_index(out.shape(), [&](const Shape& index) {
        out.as<To>()[out.offset(index)] = scalar::convert<To>(load<From>(in, in.offset(index)));
      });
    });
  });
}

}  // namespace anymps
