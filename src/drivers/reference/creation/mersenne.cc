// SPDX-License-Identifier: Apache-2.0
// The standard library has the generator; only the making of a double is written out.
#include <random>

#include "drivers/reference/reference.h"

namespace anymps {

REFERENCE(random_mersenne) {
  std::mt19937 words(static_cast<uint32_t>(args.attrs.i("seed")));
  for_each_index(args.out[0].shape(), [&](const Shape& index) {
    const auto high = static_cast<double>(words() >> 5), low = static_cast<double>(words() >> 6);
    args.out[0].at<double>(index) = (high * 0x1p26 + low) * 0x1p-53;
  });
}

}  // namespace anymps
