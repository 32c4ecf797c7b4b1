// SPDX-License-Identifier: Apache-2.0
// Elements by index: gather, gather_nd, gather_along_axis.
#include "drivers/reference/move.h"

namespace anymps {

namespace {

int64_t index_at(const View& indices, const Shape& place) {
  return load_int(indices, indices.offset(place));
}

}  // namespace

REFERENCE(gather) {
  const View &x = args.in[0], &indices = args.in[1], &y = args.out[0];
  const int64_t axis = normalize_axis(args.attrs.i("axis"), x.rank(), "gather");
  const int64_t batch = args.attrs.i("batch_dims"), picked = indices.rank() - batch;
  require_shape(args,
                batch >= 0 && batch <= axis && picked >= 0 && y.rank() == x.rank() - 1 + picked);
  move_elements(x, y, [&](const Shape& index) {
    const int64_t* at = index.begin();
    Shape place(at, at + batch);  // in indices
    for (int64_t i = 0; i < picked; ++i) place.push_back(at[axis + i]);
    Shape source(at, at + axis);
    source.push_back(checked_index(args, index_at(indices, place), axis, x.extent(axis)));
    for (int64_t i = axis + picked; i < y.rank(); ++i) source.push_back(at[i]);
    return source;
  });
}

REFERENCE(gather_nd) {
  const View &x = args.in[0], &indices = args.in[1], &y = args.out[0];
  const int64_t batch = args.attrs.i("batch_dims"), tuples = indices.rank() - 1;
  require_shape(args, batch >= 0 && tuples >= batch && batch + indices.extent(tuples) <= x.rank() &&
                          y.rank() == tuples + x.rank() - batch - indices.extent(tuples));
  const int64_t depth = indices.extent(tuples);
  move_elements(x, y, [&](const Shape& index) {
    const int64_t* at = index.begin();
    Shape place(at, at + tuples), source(at, at + batch);
    place.push_back(0);
    for (int64_t i = 0; i < depth; ++i) {
      place.back() = i;
      source.push_back(
          checked_index(args, index_at(indices, place), batch + i, x.extent(batch + i)));
    }
    for (int64_t i = tuples; i < y.rank(); ++i) source.push_back(at[i]);
    return source;
  });
}

REFERENCE(gather_along_axis) {
  const View &x = args.in[0], &indices = args.in[1], &y = args.out[0];
  const int64_t axis = normalize_axis(args.attrs.i("axis"), x.rank(), "gather_along_axis");
  require_shape(args, indices.shape() == y.shape() && x.rank() == y.rank());
  for (int64_t i = 0; i < x.rank(); ++i)
    require_shape(args, i == axis || y.extent(i) <= x.extent(i));
  move_elements(x, y, [&](const Shape& index) {
    Shape source = index;
    source[axis] = checked_index(args, index_at(indices, index), axis, x.extent(axis));
    return source;
  });
}

}  // namespace anymps
