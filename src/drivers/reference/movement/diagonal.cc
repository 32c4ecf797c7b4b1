// SPDX-License-Identifier: Apache-2.0
// Diagonals of matrices, and matrices of diagonals.
#include "drivers/reference/move.h"

namespace anymps {

REFERENCE(diagonal) {
  const View &x = args.in[0], &y = args.out[0];
  const size_t rows = normalize_axis(args.attrs.i("axis1"), x.rank(), "diagonal");
  const size_t columns = normalize_axis(args.attrs.i("axis2"), x.rank(), "diagonal");
  const int64_t offset = args.attrs.i("offset");
  move_elements(x, y, [&](const Shape& index) {
    Shape source(x.shape().size(), 0);
    size_t next = 0;
    for (size_t i = 0; i < source.size(); ++i)
      if (i != rows && i != columns) source[i] = index[next++];
    source[rows] = index[next] - std::min<int64_t>(offset, 0);
    source[columns] = index[next] + std::max<int64_t>(offset, 0);
    return source;
  });
}

REFERENCE(diag_embed) {
  const View &x = args.in[0], &y = args.out[0];
  const size_t rows = normalize_axis(args.attrs.i("axis1"), y.rank(), "diag_embed");
  const size_t columns = normalize_axis(args.attrs.i("axis2"), y.rank(), "diag_embed");
  const int64_t offset = args.attrs.i("offset");
  const size_t size = size_of(y.dtype);
  for_each_index(y.shape(), [&](const Shape& index) {
    auto* to = y.data + y.offset(index) * static_cast<int64_t>(size);
    if (index[columns] - index[rows] != offset) return (void)std::memset(to, 0, size);
    Shape source;
    for (size_t i = 0; i < index.size(); ++i)
      if (i != rows && i != columns) source.push_back(index[i]);
    source.push_back(index[rows] + std::min<int64_t>(offset, 0));
    move_element(y, y.offset(index), x, x.offset(source));
  });
}

}  // namespace anymps
