// SPDX-License-Identifier: Apache-2.0
// Reference kernels of ops whose result is as long as the data say: nonzero, compress, unique.
#include "drivers/reference/elementwise/elementwise.h"
#include "drivers/reference/move.h"
#include "semantics/unique.h"

namespace anymps {

REFERENCE(nonzero) {
  const View &x = args.in[0], &y = args.out[0];
  const int64_t axis_stride = y.stride(args.attrs.b("axes_first") ? 0 : 1);
  const int64_t item_stride = y.stride(args.attrs.b("axes_first") ? 1 : 0);
  const int64_t room = y.extent(args.attrs.b("axes_first") ? 1 : 0);
  int64_t found = 0;
  for_each_index(x.shape(), [&](const Shape& index) {
    const bool set = dispatch<kAny>(
        x.dtype, [&]<typename T>() { return widen(load<T>(x, x.offset(index))) != Wide<T>(0); });
    if (!set) return;
    require_shape(args, found < room);
    for (size_t i = 0; i < index.size(); ++i)
      y.as<int64_t>()[static_cast<int64_t>(i) * axis_stride + found * item_stride] = index[i];
    ++found;
  });
  require_shape(args, found == room);
}

REFERENCE(compress) {
  const View &x = args.in[0], &condition = args.in[1], &y = args.out[0];
  const std::vector<int64_t>& axes = args.attrs.ints("axes");
  const int64_t axis = axes.empty() ? -1 : normalize_axis(axes[0], x.rank(), "compress");
  const int64_t extent = axis < 0 ? x.count() : x.extent(axis);
  std::vector<int64_t> taken;
  for (int64_t i = 0; i < condition.extent(0); ++i) {
    if (!load<bool>(condition, i * condition.stride(0))) continue;
    require(i < extent, "[compress] condition is true at {}, the axis has the extent {}", i,
            extent);
    taken.push_back(i);
  }
  require_shape(args, y.extent(axis < 0 ? 0 : axis) == std::ssize(taken));
  move_elements(x, y, [&](const Shape& index) {
    if (axis < 0) return index_of(x.shape(), taken[index[0]]);
    Shape from = index;
    int64_t& at = from[axis];
    at = taken[at];
    return from;
  });
}

namespace {

// `find(desc, data, axis)` tells the distinct elements or slices.
template <typename Find>
void write_distinct(const ReferenceArgs& args, Find find) {
  const View& x = args.in[0];
  const int64_t axis = unique_axis(args.attrs.ints("axes"), x.rank());
  // A dense copy: the search takes contiguous elements.
  const TensorDesc desc(x.dtype, x.shape());
  std::vector<uint64_t> memory(desc.bytes() / sizeof(uint64_t) + 1);
  const View dense{x.dtype, reinterpret_cast<char*>(memory.data()), &desc.shape, &desc.strides};
  move_elements(x, dense, [](const Shape& index) { return index; });
  const Distinct distinct = find(desc, memory.data(), axis);
  const auto count = std::ssize(distinct.first);
  require_shape(args, args.out[0].extent(axis < 0 ? 0 : axis) == count);
  move_elements(x, args.out[0], [&](const Shape& index) {
    if (axis < 0) return index_of(x.shape(), distinct.first[index[0]]);
    Shape from = index;
    int64_t& at = from[axis];
    at = distinct.first[at];
    return from;
  });
  const std::vector<int64_t>* lists[] = {&distinct.first, &distinct.inverse, &distinct.counts};
  for (size_t i = 1; i < args.out.size(); ++i)
    for (size_t k = 0; k < lists[i - 1]->size(); ++k)
      args.out[i].at<int64_t>({static_cast<int64_t>(k)}) = (*lists[i - 1])[k];
}

}  // namespace

REFERENCE(unique) {
  write_distinct(args, [&](const TensorDesc& desc, const void* data, int64_t axis) {
    return find_distinct(desc, data, axis, args.attrs.b("sorted"));
  });
}

REFERENCE(unique_consecutive) { write_distinct(args, find_changes); }

}  // namespace anymps
