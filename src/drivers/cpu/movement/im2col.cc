// SPDX-License-Identifier: Apache-2.0
// Windows as columns on the CPU. im2col shares out the rows of its result, each one tap of one
// channel; col2im shares out channels, since windows of one channel add to the same pixels.
#include <algorithm>
#include <cstring>

#include "drivers/cpu/common/by_size.h"
#include "drivers/cpu/common/widen.h"
#include "drivers/cpu/cpu_kernel.h"
#include "drivers/cpu/threads.h"
#include "ops/layers/window.h"

namespace anymps::cpu {

namespace {

struct Plan {
  Window window;
  Shape image, windows;
  int64_t channels = 0, taps = 1, columns = 1, pixels = 1;  // channels of all batches

  Plan(const Attrs& attrs, Shape extents, const Shape& kernel, int64_t all_channels)
      : window(resolve_window(attrs, extents, kernel)),
        image(std::move(extents)),
        channels(all_channels) {
    for (size_t i = 0; i < image.size(); ++i)
      windows.push_back((image[i] + window.pads_begin[i] + window.pads_end[i] - window.span(i)) /
                            window.strides[i] +
                        1);
    taps = element_count(kernel);
    columns = element_count(windows);
    pixels = element_count(image);
  }

  // Calls fn(first column, pixel of its tap, first and last window inside) for each line of
  // windows along the last axis, of tap `tap`; pixel is negative when the line is outside.
  template <typename Fn>
  void for_lines(int64_t tap, Fn&& fn) const {
    const size_t last = image.size() - 1;
    Shape at(image.size(), 0);
    for (size_t i = image.size(); i-- > 0; tap /= window.kernel[i])
      at[i] = tap % window.kernel[i] * window.dilations[i] - window.pads_begin[i];
    const int64_t stride = window.strides[last], width = windows[last];
    // Windows whose tap lies inside the last axis: at + w * stride in [0, extent).
    const int64_t first =
        std::clamp<int64_t>(at[last] >= 0 ? 0 : (-at[last] + stride - 1) / stride, 0, width);
    const int64_t room = image[last] - 1 - at[last];
    const int64_t end = std::clamp<int64_t>(room < 0 ? 0 : room / stride + 1, first, width);
    for (int64_t line = 0; line < columns / width; ++line) {
      int64_t rest = line, pixel = 0, scale = image[last];
      bool inside = true;
      for (size_t i = last; i-- > 0; rest /= windows[i]) {
        const int64_t place = at[i] + rest % windows[i] * window.strides[i];
        inside &= place >= 0 && place < image[i];
        pixel += place * scale;
        scale *= image[i];
      }
      fn(line * width, pixel + at[last], inside ? first : width, inside ? end : width);
    }
  }
};

template <typename T>
KernelPtr make_im2col_sized(const Plan& plan) {
  return make_kernel([plan](const KernelArgs& args) {
    const T* x = static_cast<const T*>(args.inputs[0]);
    T* y = static_cast<T*>(args.outputs[0]);
    const int64_t stride = plan.window.strides.back(), width = plan.windows.back();
    parallel_for(0, plan.channels * plan.taps, static_cast<double>(plan.columns),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t row = begin; row < end; ++row) {
                     const T* from = x + row / plan.taps * plan.pixels;
                     T* to = y + row * plan.columns;
                     plan.for_lines(row % plan.taps, [&](int64_t column, int64_t pixel,
                                                         int64_t first, int64_t last) {
                       std::fill_n(to + column, std::min(first, width), T{});
                       for (int64_t w = first; w < last; ++w)
                         to[column + w] = from[pixel + w * stride];
                       std::fill(to + column + std::min(last, width), to + column + width, T{});
                     });
                   }
                 });
  });
}

CPU_KERNEL(im2col, "lines") {
  const TensorDesc& x = request.in(0);
  if (!x.contiguous() || !request.out().contiguous())
    return refuse(why, "x or y is not contiguous");
  if (request.out().count() == 0) return make_kernel([](const KernelArgs&) {});
  const std::vector<int64_t>& kernel = request.attrs.ints("kernel");
  const Plan plan(request.attrs, Shape(x.shape.begin() + 2, x.shape.end()),
                  Shape(kernel.begin(), kernel.end()), x.shape[0] * x.shape[1]);
  return by_size(size_of(x.dtype), [&]<typename T>() { return make_im2col_sized<T>(plan); });
}

CPU_KERNEL(col2im, "lines") {
  const TensorDesc &x = request.in(0), &y = request.out();
  const auto kernel = request.ints(2, "kernel");
  if (!kernel) return refuse(why, "the kernel is not known");
  if (!x.contiguous() || !y.contiguous()) return refuse(why, "x or y is not contiguous");
  if (is_half(x.dtype)) return widened(request, make_col2im, why);
  if (x.dtype != DType::kF32 && x.dtype != DType::kF64)
    return refuse(why, fmt::format("x is {}", name(x.dtype)));
  if (y.count() == 0) return make_kernel([](const KernelArgs&) {});
  const Plan plan(request.attrs, Shape(y.shape.begin() + 2, y.shape.end()),
                  Shape(kernel->begin(), kernel->end()), y.shape[0] * y.shape[1]);
  constexpr DTypeSet kTypes = bit(DType::kF32) | bit(DType::kF64);
  return dispatch<kTypes>(x.dtype, [&]<typename T>() {
    return make_kernel([plan](const KernelArgs& args) {
      const int64_t stride = plan.window.strides.back();
      parallel_for(0, plan.channels, static_cast<double>(plan.taps * plan.columns),
                   [&](int64_t begin, int64_t end) {
                     for (int64_t channel = begin; channel < end; ++channel) {
                       const T* from = static_cast<const T*>(args.inputs[0]) +
                                       channel * plan.taps * plan.columns;
                       T* to = static_cast<T*>(args.outputs[0]) + channel * plan.pixels;
                       std::fill_n(to, plan.pixels, T{});
                       for (int64_t tap = 0; tap < plan.taps; ++tap, from += plan.columns)
                         plan.for_lines(
                             tap, [&](int64_t column, int64_t pixel, int64_t first, int64_t last) {
                               for (int64_t w = first; w < last; ++w)
                                 to[pixel + w * stride] += from[column + w];
                             });
                     }
                   });
    });
  });
}

}  // namespace

}  // namespace anymps::cpu
