// SPDX-License-Identifier: Apache-2.0
// Moving elements without looking at them: the shape ops copy bytes by the element's size, so one
// loop serves every dtype.
#pragma once

#include <cstring>

#include "drivers/reference/reference.h"

namespace anymps {

inline void move_element(const View& to, int64_t to_offset, const View& from, int64_t from_offset) {
  const auto size = static_cast<int64_t>(size_of(to.dtype));
  std::memcpy(to.data + to_offset * size, from.data + from_offset * size, size);
}

// y[index] = x[source(index)] for each index of y, where source gives an index of x.
template <typename Source>
void move_elements(const View& x, const View& y, Source&& source) {
  for_each_index(y.shape(), [&](const Shape& index) {
    move_element(y, y.offset(index), x, x.offset(source(index)));
  });
}

// The index of element n in row-major order; n must be inside the shape.
inline Shape index_of(const Shape& shape, int64_t n) {
  Shape index(shape.size(), 0);
  for (size_t axis = shape.size(); axis-- > 0; n /= shape[axis]) index[axis] = n % shape[axis];
  return index;
}

// y's elements in row-major order are x's.
inline void move_in_order(const View& x, const View& y) {
  int64_t n = 0;
  move_elements(x, y, [&](const Shape&) { return index_of(x.shape(), n++); });
}

// A kernel's shapes come from inference; this stops a caller that made them up.
inline void require_shape(const ReferenceArgs& args, bool condition) {
  require(condition, "[{}] the output's shape {} does not follow from the inputs", args.op.name,
          args.out.empty() ? "" : to_string(args.out[0].shape()));
}

// A place on an axis, negative ones counted from its end; fails when it is outside.
inline int64_t checked_index(const ReferenceArgs& args, int64_t index, int64_t axis,
                             int64_t extent) {
  require(index >= -extent && index < extent,
          "[{}] index {} is out of range for axis {} of extent {}", args.op.name, index, axis,
          extent);
  return index < 0 ? index + extent : index;
}

}  // namespace anymps
