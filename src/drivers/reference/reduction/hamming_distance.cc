// SPDX-License-Identifier: Apache-2.0
// Reference kernel of the Hamming distance.
#include <bit>

#include "drivers/reference/reference.h"
#include "semantics/scalar_functions.h"

namespace anymps {

REFERENCE(hamming_distance) {
  const View &a = args.in[0], &b = args.in[1], &y = args.out[0];
  const int64_t last_a = a.extent(a.rank() - 1), last_b = b.extent(b.rank() - 1);
  Shape whole = y.shape();
  whole.push_back(last_a == 1 ? last_b : last_a);
  const BroadcastOffset at_a(a, whole), at_b(b, whole);
  dispatch<kInt>(a.dtype, [&]<typename T>() {
    for_each_index(y.shape(), [&](const Shape& index) {
      Shape full = index;
      full.push_back(0);
      int64_t distance = 0;
      for (int64_t k = 0; k < whole.back(); ++k) {
        full.back() = k;
        const auto different =
            static_cast<std::make_unsigned_t<T>>(a.as<T>()[at_a(full)] ^ b.as<T>()[at_b(full)]);
        distance += std::popcount(different);
      }
      dispatch<kReal>(y.dtype,
                      [&]<typename To>() { y.at<To>(index) = scalar::convert<To>(distance); });
    });
  });
}

}  // namespace anymps
