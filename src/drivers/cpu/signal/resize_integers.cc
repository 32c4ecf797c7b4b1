// SPDX-License-Identifier: Apache-2.0
// Linear and cubic resizing of integers. They are cut off, not rounded, so that a sum one bit below
// an integer is another result: products and sums are the reference's, in f64 and in its order.
#include <limits>

#include "drivers/cpu/signal/resize.h"
#include "drivers/cpu/threads.h"

namespace anymps::cpu {

namespace {

constexpr double kIntegerTapNs = 0.7;

// Element by element of an axis: taps, first to last.
using AxisOfTaps = std::vector<std::vector<ResizeTap>>;

template <typename T>
T cut_off(double value) {
  using Limits = std::numeric_limits<T>;
  if (value <= static_cast<double>(Limits::lowest())) return Limits::lowest();
  if (value >= static_cast<double>(Limits::max())) return Limits::max();
  return static_cast<T>(value);
}

// [images, lines, line, inner], of which lines and the line are resized.
struct IntegerResize {
  int64_t images = 1, lines_in = 1, line_in = 1, inner = 1;
  AxisOfTaps lines, line;

  int64_t rows() const { return images * std::ssize(lines); }

  template <typename T>
  void run_row(const T* x, int64_t row, T* y) const {
    const int64_t size = line_in * inner;
    x += row / std::ssize(lines) * lines_in * size;
    y += row * std::ssize(line) * inner;
    const std::vector<ResizeTap>& outer = lines[row % std::ssize(lines)];
    for (const std::vector<ResizeTap>& taps : line)
      for (int64_t i = 0; i < inner; ++i) {
        double sum = 0;
        for (const ResizeTap& a : outer)
          for (const ResizeTap& b : taps)
            sum +=
                a.weight * b.weight * static_cast<double>(x[a.index * size + b.index * inner + i]);
        *y++ = cut_off<T>(sum);
      }
  }
};

AxisOfTaps taps_of_axis(const ResizeAxis& axis, const ResizeFilter& filter) {
  AxisOfTaps taps;
  for (int64_t at = 0; at < axis.out; ++at) taps.push_back(axis.taps(at, filter));
  return taps;
}

KernelPtr make_integers(const KernelRequest& request, std::string& why) {
  const TensorDesc &x = request.in(0), &y = request.out();
  if (request.attrs.s("mode") == "nearest") return refuse(why, "mode is nearest");
  if (!contains(kInt, x.dtype)) return refuse(why, fmt::format("dtype {}", name(x.dtype)));
  if (!x.contiguous() || !y.contiguous()) return refuse(why, "not contiguous");
  if (y.count() == 0 || x.count() == 0) return refuse(why, "empty");
  if (request.attrs.s("coordinate") == "tf_crop_and_resize") return refuse(why, "a crop");
  const auto axes = resized_axes(request, why);
  if (!axes) return nullptr;
  const std::vector<size_t> resized = neighbouring_axes(*axes, why);
  if (resized.empty()) return nullptr;
  const ResizeFilter filter = resize_filter(request.attrs);
  IntegerResize plan;
  plan.line = taps_of_axis((*axes)[resized.back()], filter);
  plan.line_in = x.shape[resized.back()];
  plan.lines = {{{0, 1}}};
  if (resized.size() == 2) {
    plan.lines = taps_of_axis((*axes)[resized.front()], filter);
    plan.lines_in = x.shape[resized.front()];
  }
  for (size_t i = 0; i < resized.front(); ++i) plan.images *= x.shape[i];
  for (size_t i = resized.back() + 1; i < x.shape.size(); ++i) plan.inner *= x.shape[i];
  const double ns =
      kIntegerTapNs * static_cast<double>(plan.inner) *
      static_cast<double>(plan.line.size() * plan.line[0].size() * plan.lines[0].size());
  return dispatch<kInt>(x.dtype, [&]<typename T>() -> KernelPtr {
    return make_kernel([plan = std::move(plan), ns](const KernelArgs& args) {
      parallel_for(0, plan.rows(), ns, [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row)
          plan.run_row(static_cast<const T*>(args.inputs[0]), row,
                       static_cast<T*>(args.outputs[0]));
      });
    });
  });
}

const KernelRegistrar kResizeIntegers("cpu", "resize", "integers", 30, make_integers);

}  // namespace

}  // namespace anymps::cpu
