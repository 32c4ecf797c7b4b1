// SPDX-License-Identifier: Apache-2.0
// Reference kernel of bands of matrices.
#include "drivers/reference/lines.h"
#include "drivers/reference/move.h"

namespace anymps {

REFERENCE(band_part) {
  const View &x = args.in[0], &y = args.out[0];
  const int64_t lower = int_of(args, 1, "lower"), upper = int_of(args, 2, "upper");
  const auto size = static_cast<int64_t>(size_of(y.dtype));
  for_each_index(y.shape(), [&](const Shape& index) {
    const int64_t below = index[index.size() - 2] - index.back();
    if ((lower < 0 || below <= lower) && (upper < 0 || -below <= upper))
      move_element(y, y.offset(index), x, x.offset(index));
    else
      std::memset(y.data + y.offset(index) * size, 0, size);
  });
}

}  // namespace anymps
