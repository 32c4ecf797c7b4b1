// SPDX-License-Identifier: Apache-2.0
// reverse_sequence on the CPU: the axes that lie densely in both tensors are copied as one run.
#include <algorithm>
#include <cstring>

#include "drivers/cpu/common/rows.h"
#include "drivers/cpu/cpu_kernel.h"

namespace anymps::cpu {

namespace {

// How many of the last axes, down to `first`, lie as one dense run in both tensors.
size_t dense_axes(const TensorDesc& x, const TensorDesc& y, size_t first) {
  int64_t step = 1;
  size_t axis = x.shape.size();
  while (axis > first) {
    const size_t i = axis - 1;
    if (x.shape[i] != 1 && (x.strides[i] != step || y.strides[i] != step)) break;
    step *= x.shape[i];
    axis = i;
  }
  return axis;
}

template <typename Index>
KernelPtr make_reverse(const KernelRequest& request) {
  const TensorDesc &x = request.in(0), &lengths = request.in(1), &y = request.out();
  const auto axis = [&](const char* attr) {
    return normalize_axis(request.attrs.i(attr), x.rank(), "reverse_sequence");
  };
  const size_t time = axis("time_axis"), batch = axis("batch_axis");
  const size_t tail = dense_axes(x, y, std::max(time, batch) + 1);
  Shape shape(x.shape.begin(), x.shape.begin() + static_cast<ptrdiff_t>(tail));
  int64_t run = size_of(x.dtype);
  for (size_t i = tail; i < x.shape.size(); ++i) run *= x.shape[i];
  Strides to, from, length, step, sequence;
  for (size_t i = 0; i < tail; ++i) {
    to.push_back(y.strides[i]);
    from.push_back(i == time ? 0 : x.strides[i]);
    length.push_back(i == batch ? lengths.strides[0] : 0);
    step.push_back(i == time);
    sequence.push_back(i == batch);
  }
  const Rows rows(merge_loops(shape, {to, from, length, step, sequence}));
  const int64_t steps = x.shape[time], x_step = x.strides[time];
  return make_kernel([=, size = static_cast<int64_t>(size_of(x.dtype))](const KernelArgs& args) {
    const auto* source = static_cast<const char*>(args.inputs[0]);
    auto* target = static_cast<char*>(args.outputs[0]);
    for_each_row(rows, 2 + 0.1 * static_cast<double>(run), [&](const Offsets& at) {
      for (int64_t i = 0; i < rows.length; ++i) {
        const int64_t n = static_cast<const Index*>(args.inputs[1])[at[2] + i * rows.steps[2]];
        require(n >= 0 && n <= steps,
                "[reverse_sequence] length {} of sequence {} is not in [0, {}]", n,
                at[4] + i * rows.steps[4], steps);
        int64_t t = at[3] + i * rows.steps[3];
        if (t < n) t = n - 1 - t;
        std::memcpy(target + (at[0] + i * rows.steps[0]) * size,
                    source + (at[1] + i * rows.steps[1] + t * x_step) * size, run);
      }
    });
  });
}

CPU_KERNEL(reverse_sequence, "copy") {
  return request.in(1).dtype == DType::kI64 ? make_reverse<int64_t>(request)
                                            : make_reverse<int32_t>(request);
}

}  // namespace

}  // namespace anymps::cpu
