// SPDX-License-Identifier: Apache-2.0
// resize_gradient on the CPU.
#include "drivers/cpu/common/separable_sum.h"
#include "drivers/cpu/cpu_kernel.h"
#include "ops/signal/resize.h"

namespace anymps::cpu {

namespace {

CPU_KERNEL(resize_gradient, "places") {
  const TensorDesc &dy = request.in(0), &dx = request.out();
  if (dx.count() == 0 || dy.count() == 0) return refuse(why, "a tensor is empty");
  for (size_t i = 2; i < 5; ++i)
    if (request.has(i)) return refuse(why, "numbers that are inputs");
  const ResizeNumbers numbers{request.attrs.floats("scales"), request.attrs.floats("offsets"),
                              request.attrs.floats("roi")};
  const ResizeFilter filter = resize_filter(request.attrs);
  std::vector<std::vector<Taps>> sources;
  for (const ResizeAxis& axis : resize_axes(resize_rule(request.attrs, dx.shape.size()), dx.shape,
                                            dy.shape, numbers, request.attrs.ints("sizes"))) {
    const int64_t step = dy.strides[sources.size()];
    sources.emplace_back(static_cast<size_t>(axis.in));
    for (int64_t at = 0; at < axis.out; ++at) {
      if (axis.identity()) {
        sources.back()[at].push_back({at * step, 1});
        continue;
      }
      for (const ResizeTap& tap : axis.taps(at, filter))
        sources.back()[tap.index].push_back({at * step, tap.weight});
    }
  }
  return dispatch<kFloat>(
      dy.dtype, [&]<typename T>() { return make_kernel(SeparableSum<T>(dx, std::move(sources))); });
}

}  // namespace

}  // namespace anymps::cpu
