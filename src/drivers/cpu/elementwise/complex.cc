// SPDX-License-Identifier: Apache-2.0
// planar on the CPU: complex numbers as two planes.
#include "drivers/cpu/common/rows.h"
#include "drivers/cpu/cpu_kernel.h"

namespace anymps::cpu {

namespace {

CPU_KERNEL(planar, "plain") {
  const TensorDesc &x = request.in(0), &y = request.out();
  const Rows rows(merge_loops(x.shape, {x.strides, y.strides}));
  return dispatch<kComplex>(x.dtype, [&]<typename T>() {
    return make_kernel([=, imaginary = x.shape.back() * y.strides.back()](const KernelArgs& args) {
      for_each_row(rows, 1, [&](const Offsets& at) {
        const T* from = static_cast<const T*>(args.inputs[0]) + at[0];
        auto* to = static_cast<typename T::value_type*>(args.outputs[0]) + at[1];
        for (int64_t i = 0; i < rows.length; ++i) {
          const T value = from[i * rows.steps[0]];
          to[i * rows.steps[1]] = value.real();
          to[i * rows.steps[1] + imaginary] = value.imag();
        }
      });
    });
  });
}

}  // namespace

}  // namespace anymps::cpu
