// SPDX-License-Identifier: Apache-2.0
// Reference kernels of order along an axis: a stable sort of the places on each line.
#include <algorithm>
#include <numeric>

#include "drivers/reference/lines.h"

namespace anymps {

namespace {

// Calls fn(index, line, order) for each line: order[i] is the place of the i-th in order.
template <typename T, typename Fn>
void for_each_order(const View& x, int64_t axis, bool descending, Fn fn) {
  for_each_line(x.shape(), axis, [&](const Shape& index) {
    const std::vector<Wide<T>> line = read_line<T>(x, index, axis);
    std::vector<size_t> order(line.size());
    std::iota(order.begin(), order.end(), size_t{0});
    const auto less = [&](Wide<T> a, Wide<T> b) {
      if (scalar::is_nan_value(b)) return !scalar::is_nan_value(a);
      return a < b;
    };
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      return descending ? less(line[b], line[a]) : less(line[a], line[b]);
    });
    fn(index, line, order);
  });
}

void take_first(const ReferenceArgs& args, int64_t axis, bool descending, const View* values,
                const View* indices) {
  const View& x = args.in[0];
  dispatch<kReal | kBoolean>(x.dtype, [&]<typename T>() {
    for_each_order<T>(
        x, axis, descending,
        [&](const Shape& index, const std::vector<Wide<T>>& line,
            const std::vector<size_t>& order) {
          for (int64_t i = 0; i < args.out[0].extent(axis); ++i) {
            const size_t at = order[i];
            if (values)
              values->as<T>()[values->offset(index) + i * values->stride(axis)] =
                  narrow<T>(line[at]);
            if (indices)
              indices->as<int64_t>()[indices->offset(index) + i * indices->stride(axis)] =
                  static_cast<int64_t>(at);
          }
        });
  });
}

}  // namespace

REFERENCE(sort) {
  take_first(args, axis_of(args, 1, args.in[0].rank()), args.attrs.b("descending"), &args.out[0],
             nullptr);
}

REFERENCE(sort_with_indices) {
  take_first(args, axis_of(args, 1, args.in[0].rank()), args.attrs.b("descending"), &args.out[0],
             &args.out[1]);
}

REFERENCE(argsort) {
  take_first(args, axis_of(args, 1, args.in[0].rank()), args.attrs.b("descending"), nullptr,
             &args.out[0]);
}

REFERENCE(top_k) {
  const int64_t axis = axis_of(args, 2, args.in[0].rank());
  require(args.out[0].extent(axis) <= args.in[0].extent(axis),
          "[top_k] k is {}, axis {} has the extent {}", args.out[0].extent(axis), axis,
          args.in[0].extent(axis));
  take_first(args, axis, args.attrs.b("largest"), &args.out[0],
             args.out.size() > 1 ? &args.out[1] : nullptr);
}

REFERENCE(top_k_gradient) {
  const View &dy = args.in[0], &x = args.in[1], &dx = args.out[0];
  const int64_t axis = axis_of(args, 2, x.rank());
  dispatch<kFloat>(x.dtype, [&]<typename T>() {
    for_each_index(dx.shape(), [&](const Shape& index) { dx.at<T>(index) = T(0.0f); });
    for_each_order<T>(
        x, axis, args.attrs.b("largest"),
        [&](const Shape& index, const std::vector<Wide<T>>&, const std::vector<size_t>& order) {
          for (int64_t i = 0; i < dy.extent(axis); ++i)
            dx.as<T>()[dx.offset(index) + static_cast<int64_t>(order[i]) * dx.stride(axis)] =
                dy.as<T>()[dy.offset(index) + i * dy.stride(axis)];
        });
  });
}

}  // namespace anymps
