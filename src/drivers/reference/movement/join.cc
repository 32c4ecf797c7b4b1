// SPDX-License-Identifier: Apache-2.0
// Tensors side by side: concat, stack, tile.
#include "drivers/reference/move.h"

namespace anymps {

REFERENCE(concat) {
  const View& y = args.out[0];
  const int64_t axis = normalize_axis(args.attrs.i("axis"), y.rank(), "concat");
  int64_t first = 0;
  for (const View& x : args.in) {
    Shape expected = y.shape();
    expected[axis] = x.extent(axis);
    require_shape(args, x.shape() == expected && first + x.extent(axis) <= y.extent(axis));
    for_each_index(x.shape(), [&](const Shape& index) {
      Shape target = index;
      target[axis] += first;
      move_element(y, y.offset(target), x, x.offset(index));
    });
    first += x.extent(axis);
  }
  require_shape(args, first == y.extent(axis));
}

REFERENCE(stack) {
  const View& y = args.out[0];
  const int64_t axis = normalize_axis(args.attrs.i("axis"), y.rank(), "stack");
  require_shape(args, y.extent(axis) == std::ssize(args.in));
  for (size_t i = 0; i < args.in.size(); ++i) {
    const View& x = args.in[i];
    Shape expected = y.shape();
    expected.erase(axis);
    require_shape(args, x.shape() == expected);
    for_each_index(x.shape(), [&](const Shape& index) {
      Shape target = index;
      target.insert(axis, static_cast<int64_t>(i));
      move_element(y, y.offset(target), x, x.offset(index));
    });
  }
}

REFERENCE(tile) {
  const View &x = args.in[0], &y = args.out[0];
  require_shape(args, x.rank() == y.rank() && (x.count() > 0 || y.count() == 0));
  move_elements(x, y, [&](const Shape& index) {
    Shape source = index;
    for (size_t i = 0; i < index.size(); ++i) source[i] = index[i] % x.shape()[i];
    return source;
  });
}

}  // namespace anymps
