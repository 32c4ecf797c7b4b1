// SPDX-License-Identifier: Apache-2.0
// Reference kernel of masked_scatter.
#include "drivers/reference/elementwise/elementwise.h"
#include "drivers/reference/move.h"

namespace anymps {

REFERENCE(masked_scatter) {
  const View &x = args.in[0], &mask = args.in[1], &source = args.in[2], &y = args.out[0];
  const int64_t count = source.count();
  int64_t next = 0;
  for_each_index(y.shape(), [&](const Shape& index) {
    if (!load<bool>(mask, mask.offset(index)))
      return move_element(y, y.offset(index), x, x.offset(index));
    require(next < count,
            "[masked_scatter] the mask is true more often than source has elements: {}", count);
    move_element(y, y.offset(index), source, source.offset(index_of(source.shape(), next++)));
  });
}

}  // namespace anymps
