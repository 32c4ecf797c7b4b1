// SPDX-License-Identifier: Apache-2.0
// Pooling by its definition, over any number of spatial axes.
#include <cmath>
#include <limits>

#include "drivers/reference/dense.h"
#include "ops/window.h"

namespace anymps {

namespace {

// The spatial geometry of a pooling op, and a walk over its windows.
class Pool {
 public:
  explicit Pool(const ReferenceArgs& args)
      : axes_(tensor_axes(args.attrs, args.in[0].shape().size())), in_(args.in[0].shape()) {
    Shape spatial;
    for (size_t i = 0; i < axes_.count; ++i) spatial.push_back(in_[axes_.spatial + i]);
    const std::vector<int64_t>& kernel = args.attrs.ints("kernel");
    window_ = resolve_window(args.attrs, spatial, Shape(kernel));
  }

  // Calls fn(index into x, inside x, inside the padding) for each element of output `at`'s window.
  template <typename Fn>
  void for_each_tap(const Shape& at, Fn&& fn) const {
    Shape from = at;
    for_each_index(window_.kernel, [&](const Shape& tap) {
      bool inside = true, padded = true;
      for (size_t i = 0; i < tap.size(); ++i) {
        const size_t axis = axes_.spatial + i;
        const int64_t place =
            at[axis] * window_.strides[i] + tap[i] * window_.dilations[i] - window_.pads_begin[i];
        inside = inside && place >= 0 && place < in_[axis];
        padded = padded && place < in_[axis] + window_.pads_end[i];
        from[axis] = place;
      }
      fn(static_cast<const Shape&>(from), inside, padded);
    });
  }

 private:
  TensorAxes axes_;
  const Shape& in_;
  Window window_;
};

template <typename T>
bool is_nan(T value) {
  if constexpr (std::is_floating_point_v<T>) return std::isnan(value);
  return false;
}

template <typename T>
T store(double value) {
  return static_cast<T>(static_cast<Compute<T>>(value));
}

}  // namespace

REFERENCE(max_pool) {
  const Pool pool(args);
  const View &x = args.in[0], &y = args.out[0];
  const Strides flat = contiguous_strides(x.shape());
  dispatch<kReal>(x.dtype, [&]<typename T>() {
    using C = Compute<T>;
    using Limits = std::numeric_limits<C>;
    for_each_index(y.shape(), [&](const Shape& at) {
      C best = Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
      int64_t index = -1;
      pool.for_each_tap(at, [&](const Shape& from, bool inside, bool) {
        if (!inside) return;
        const C value = static_cast<C>(x.at<T>(from));
        if (index >= 0 && (is_nan(best) || !(value > best || is_nan(value)))) return;
        best = value;
        index = 0;
        for (size_t i = 0; i < from.size(); ++i) index += from[i] * flat[i];
      });
      y.at<T>(at) = static_cast<T>(best);
      if (args.out.size() > 1) args.out[1].at<int64_t>(at) = index;
    });
  });
}

REFERENCE(avg_pool) {
  const Pool pool(args);
  const View &x = args.in[0], &y = args.out[0];
  const bool count_padding = args.attrs.b("count_include_pad");
  dispatch<kFloat>(x.dtype, [&]<typename T>() {
    for_each_index(y.shape(), [&](const Shape& at) {
      double sum = 0, count = 0;
      pool.for_each_tap(at, [&](const Shape& from, bool inside, bool padded) {
        if (inside) sum += static_cast<Compute<T>>(x.at<T>(from));
        count += count_padding ? padded : inside;
      });
      y.at<T>(at) = store<T>(count == 0 ? 0 : sum / count);
    });
  });
}

REFERENCE(lp_pool) {
  const Pool pool(args);
  const View &x = args.in[0], &y = args.out[0];
  const auto p = static_cast<double>(args.attrs.i("p"));
  dispatch<kFloat>(x.dtype, [&]<typename T>() {
    for_each_index(y.shape(), [&](const Shape& at) {
      double sum = 0;
      pool.for_each_tap(at, [&](const Shape& from, bool inside, bool) {
        if (inside) sum += std::pow(std::abs(double{static_cast<Compute<T>>(x.at<T>(from))}), p);
      });
      y.at<T>(at) = store<T>(std::pow(sum, 1 / p));
    });
  });
}

}  // namespace anymps
