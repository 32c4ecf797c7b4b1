// SPDX-License-Identifier: Apache-2.0
// The gradient of softmax on the CPU: lines are shared out among threads, sums are in double.
#include <algorithm>
#include <cmath>

#include "drivers/cpu/common/lines.h"
#include "drivers/cpu/common/widen.h"
#include "drivers/cpu/cpu_kernel.h"
#include "drivers/cpu/threads.h"

namespace anymps::cpu {

namespace {

// The result's line holds the exponentials until it is finished.
template <typename T>
void run_line(const T* dy, int64_t dy_step, const T* x, int64_t x_step, T* dx, int64_t dx_step,
              int64_t length) {
  T highest = x[0];
  for (int64_t i = 1; i < length; ++i) highest = std::max(highest, x[i * x_step]);
  double sum = 0, dot = 0;
  for (int64_t i = 0; i < length; ++i) {
    const T e = std::exp(x[i * x_step] - highest);
    dx[i * dx_step] = e;
    sum += static_cast<double>(e);
    dot += static_cast<double>(e) * static_cast<double>(dy[i * dy_step]);
  }
  const T scale = static_cast<T>(1 / sum), mean = static_cast<T>(dot / sum);
  for (int64_t i = 0; i < length; ++i) {
    T& element = dx[i * dx_step];
    element = element * scale * (dy[i * dy_step] - mean);
  }
}

CPU_KERNEL(softmax_gradient, "lines") {
  const TensorDesc &dy = request.in(0), &x = request.in(1), &dx = request.out();
  if (is_half(x.dtype)) return widened(request, make_softmax_gradient, why);
  const size_t axis = normalize_axis(request.attrs.i("axis"), x.rank(), "softmax_gradient");
  if (x.count() == 0) return make_kernel([](const KernelArgs&) {});
  const int64_t length = x.shape[axis];
  const Loops lines = line_starts(x.shape, axis, {dy.strides, x.strides, dx.strides});
  const int64_t steps[] = {dy.strides[axis], x.strides[axis], dx.strides[axis]};
  const int64_t dy_step = steps[0], x_step = steps[1], dx_step = steps[2];
  constexpr DTypeSet kTypes = bit(DType::kF32) | bit(DType::kF64);
  return dispatch<kTypes>(x.dtype, [&]<typename T>() {
    return make_kernel([=](const KernelArgs& args) {
      parallel_for(
          0, lines.count(), 6.0 * static_cast<double>(length), [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i)
              run_line(static_cast<const T*>(args.inputs[0]) + lines.offset(0, i), dy_step,
                       static_cast<const T*>(args.inputs[1]) + lines.offset(1, i), x_step,
                       static_cast<T*>(args.outputs[0]) + lines.offset(2, i), dx_step, length);
          });
    });
  });
}

}  // namespace

}  // namespace anymps::cpu
