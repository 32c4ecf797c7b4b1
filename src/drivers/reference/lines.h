// SPDX-License-Identifier: Apache-2.0
// Lines along one axis of a tensor, for reference kernels that work line by line, and integers
// that come as an input or as an attribute.
#pragma once

#include <vector>

#include "drivers/reference/elementwise/elementwise.h"

namespace anymps {

// Calls fn with the index of the first element of each line along the axis; never if it is empty.
template <typename Fn>
void for_each_line(const Shape& shape, int64_t axis, Fn&& fn) {
  Shape firsts = shape;
  int64_t& length = firsts[axis];
  length = length == 0 ? 0 : 1;
  for_each_index(firsts, fn);
}

// The elements of the line at `index`, widened.
template <typename T>
std::vector<Wide<T>> read_line(const View& view, const Shape& index, int64_t axis) {
  std::vector<Wide<T>> line;
  for (int64_t i = 0; i < view.extent(axis); ++i)
    line.push_back(widen(load<T>(view, view.offset(index) + i * view.stride(axis))));
  return line;
}

// The single integer of input i, or else the attribute.
inline int64_t int_of(const ReferenceArgs& args, size_t i, const char* attr) {
  return args.has(i) ? load_int(args.in[i], 0) : args.attrs.i(attr);
}
inline int64_t axis_of(const ReferenceArgs& args, size_t i, int64_t rank) {
  return normalize_axis(int_of(args, i, "axis"), rank, args.op.name.c_str());
}

}  // namespace anymps
