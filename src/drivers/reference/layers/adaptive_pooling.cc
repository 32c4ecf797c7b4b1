// SPDX-License-Identifier: Apache-2.0
// Pooling to a given size, by its definition: windows are lists of spans along each spatial axis.
#include <cmath>
#include <limits>

#include "drivers/reference/dense.h"
#include "ops/layers/window.h"
#include "semantics/adaptive_window.h"

namespace anymps {

namespace {

// Calls fn(index into x) for each element of the window of the output at `at`.
template <typename Fn>
void for_each_in_window(const TensorAxes& axes, const std::vector<WindowSpans>& spans,
                        const Shape& at, Fn&& fn) {
  Shape extents, from = at;
  for (size_t i = 0; i < axes.count; ++i) {
    const auto [first, last] = spans[i][at[axes.spatial + i]];
    extents.push_back(last - first);
  }
  for_each_index(extents, [&](const Shape& tap) {
    for (size_t i = 0; i < axes.count; ++i)
      from[axes.spatial + i] = spans[i][at[axes.spatial + i]].first + tap[i];
    fn(static_cast<const Shape&>(from));
  });
}

std::vector<WindowSpans> spans_of(const TensorAxes& axes, const Shape& x, const Shape& y) {
  std::vector<WindowSpans> spans;
  for (size_t i = 0; i < axes.count; ++i)
    spans.push_back(adaptive_spans(x[axes.spatial + i], y[axes.spatial + i]));
  return spans;
}

double window_size(const TensorAxes& axes, const std::vector<WindowSpans>& spans, const Shape& at) {
  double size = 1;
  for (size_t i = 0; i < axes.count; ++i) {
    const auto [first, last] = spans[i][at[axes.spatial + i]];
    size *= static_cast<double>(last - first);
  }
  return size;
}

// `spans(at)` gives the windows of the plane that output `at` is in.
template <typename Spans>
void max_pool_spans(const ReferenceArgs& args, Spans spans) {
  const View &x = args.in[0], &y = args.out[0];
  const TensorAxes axes = tensor_axes(args.attrs, x.shape().size());
  dispatch<kFloat>(x.dtype, [&]<typename T>() {
    for_each_index(y.shape(), [&](const Shape& at) {
      double best = -std::numeric_limits<double>::infinity();
      int64_t place = -1;
      for_each_in_window(axes, spans(at), at, [&](const Shape& from) {
        const double value = static_cast<Compute<T>>(x.at<T>(from));
        if (place >= 0 && !(value > best || std::isnan(value))) return;
        best = value;
        place = 0;
        for (size_t i = axes.spatial; i < axes.spatial + axes.count; ++i)
          place = place * x.shape()[i] + from[i];
      });
      y.at<T>(at) = static_cast<T>(static_cast<Compute<T>>(best));
      if (args.out.size() > 1) args.out[1].at<int64_t>(at) = place;
    });
  });
}

}  // namespace

REFERENCE(adaptive_avg_pool) {
  const View &x = args.in[0], &y = args.out[0];
  const TensorAxes axes = tensor_axes(args.attrs, x.shape().size());
  const std::vector<WindowSpans> spans = spans_of(axes, x.shape(), y.shape());
  std::vector<double> means;
  for_each_index(y.shape(), [&](const Shape& at) {
    double sum = 0;
    for_each_in_window(axes, spans, at,
                       [&](const Shape& from) { sum += load_double(x, x.offset(from)); });
    means.push_back(sum / window_size(axes, spans, at));
  });
  write_dense(y, means);
}

REFERENCE(adaptive_avg_pool_gradient) {
  const View &gradient = args.in[0], &dx = args.out[0];
  const TensorAxes axes = tensor_axes(args.attrs, dx.shape().size());
  const std::vector<WindowSpans> spans = spans_of(axes, dx.shape(), gradient.shape());
  const Strides flat = contiguous_strides(dx.shape());
  std::vector<double> sums(dx.count(), 0.0);
  for_each_index(gradient.shape(), [&](const Shape& at) {
    const double share = load_double(gradient, gradient.offset(at)) / window_size(axes, spans, at);
    for_each_in_window(axes, spans, at, [&](const Shape& from) {
      int64_t place = 0;
      for (size_t i = 0; i < from.size(); ++i) place += from[i] * flat[i];
      sums[place] += share;
    });
  });
  write_dense(dx, sums);
}

REFERENCE(adaptive_max_pool) {
  const Shape &x = args.in[0].shape(), &y = args.out[0].shape();
  const std::vector<WindowSpans> spans = spans_of(tensor_axes(args.attrs, x.size()), x, y);
  max_pool_spans(args, [&](const Shape&) -> const std::vector<WindowSpans>& { return spans; });
}

REFERENCE(fractional_max_pool) {
  const View &x = args.in[0], &samples = args.in[1], &y = args.out[0];
  const std::vector<int64_t>& kernel = args.attrs.ints("kernel");
  const size_t count = kernel.size();
  max_pool_spans(args, [&](const Shape& at) {
    std::vector<WindowSpans> spans;
    for (size_t i = 0; i < count; ++i) {
      const size_t sample = count == 2 ? 1 - i : i;
      const double u = load_double(
          samples, samples.offset(std::array{at[0], at[1], static_cast<int64_t>(sample)}));
      const int64_t in = x.shape()[i + 2], out = y.shape()[i + 2];
      spans.push_back(x.dtype == DType::kF64
                          ? fractional_spans(in, out, kernel[i], u)
                          : fractional_spans(in, out, kernel[i], static_cast<float>(u)));
    }
    return spans;
  });
}

}  // namespace anymps
