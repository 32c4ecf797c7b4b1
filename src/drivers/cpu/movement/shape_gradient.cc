// SPDX-License-Identifier: Apache-2.0
// pad_gradient and tile_gradient on the CPU.
#include "drivers/cpu/common/separable_sum.h"
#include "drivers/cpu/cpu_kernel.h"
#include "drivers/cpu/reduction/reduction.h"
#include "semantics/border.h"

namespace anymps::cpu {

namespace {

CPU_KERNEL(pad_gradient, "places") {
  const TensorDesc &dy = request.in(0), &dx = request.out();
  const std::vector<int64_t>& pads = request.attrs.ints("pads");
  const std::string& mode = request.attrs.s("mode");
  if (dx.count() == 0) return make_kernel([](const KernelArgs&) {});
  std::vector<std::vector<Taps>> sources;
  for (size_t i = 0; i < dx.shape.size(); ++i) {
    sources.emplace_back(static_cast<size_t>(dx.shape[i]));
    for (int64_t at = 0; at < dy.shape[i]; ++at)
      if (const auto element = border_element(mode, at - pads[i], dx.shape[i]))
        sources.back()[element->place].push_back(
            {at * dy.strides[i], element->negated ? -1.0 : 1.0});
  }
  return dispatch<kNumber>(
      dy.dtype, [&]<typename T>() { return make_kernel(SeparableSum<T>(dx, std::move(sources))); });
}

// dy as [repeats, extent] along each axis.
CPU_KERNEL(tile_gradient, "sum") {
  const TensorDesc &dy = request.in(0), &dx = request.out();
  if (dx.count() == 0) return make_kernel([](const KernelArgs&) {});
  TensorDesc split = dy, y = dx;
  split.shape.clear(), split.strides.clear(), y.shape.clear(), y.strides.clear();
  std::vector<bool> reduced;
  for (size_t i = 0; i < dx.shape.size(); ++i) {
    const int64_t extent = dx.shape[i], repeats = dy.shape[i] / extent;
    if (repeats * extent != dy.shape[i]) return refuse(why, "dy is no multiple of dx");
    if (repeats != 1) {
      split.shape.push_back(repeats);
      split.strides.push_back(extent * dy.strides[i]);
      y.shape.push_back(1);
      y.strides.push_back(0);
      reduced.push_back(true);
    }
    split.shape.push_back(extent);
    split.strides.push_back(dy.strides[i]);
    y.shape.push_back(extent);
    y.strides.push_back(dx.strides[i]);
    reduced.push_back(false);
  }
  return make_sum_over(request, split, y, reduced, why);
}

}  // namespace

}  // namespace anymps::cpu
