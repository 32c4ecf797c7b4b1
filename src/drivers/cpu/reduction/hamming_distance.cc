// SPDX-License-Identifier: Apache-2.0
// hamming_distance on the CPU.
#include <bit>

#include "drivers/cpu/common/rows.h"
#include "drivers/cpu/cpu_kernel.h"
#include "semantics/scalar_functions.h"

namespace anymps::cpu {

namespace {

template <typename U>
KernelPtr make_hamming(const KernelRequest& request) {
  const TensorDesc &a = request.in(0), &b = request.in(1), &y = request.out();
  Shape whole = y.shape;
  whole.push_back(a.shape.back() == 1 ? b.shape.back() : a.shape.back());
  Strides from_a = broadcast_strides(a, whole), from_b = broadcast_strides(b, whole);
  const int64_t bits = whole.back(), a_step = from_a.back(), b_step = from_b.back();
  from_a.pop_back(), from_b.pop_back();
  const Rows rows(make_loops(y.shape, {y.strides, from_a, from_b}));
  const int64_t size = size_of(y.dtype);
  return make_kernel([=, dtype = y.dtype](const KernelArgs& args) {
    for_each_row(rows, 10 + static_cast<double>(bits), [&](const Offsets& at) {
      for (int64_t i = 0; i < rows.length; ++i) {
        const U* first = static_cast<const U*>(args.inputs[0]) + at[1] + i * rows.steps[1];
        const U* second = static_cast<const U*>(args.inputs[1]) + at[2] + i * rows.steps[2];
        int64_t distance = 0;
        for (int64_t k = 0; k < bits; ++k)
          distance += std::popcount(static_cast<U>(first[k * a_step] ^ second[k * b_step]));
        void* to = static_cast<char*>(args.outputs[0]) + (at[0] + i * rows.steps[0]) * size;
        dispatch<kReal>(
            dtype, [&]<typename To>() { *static_cast<To*>(to) = scalar::convert<To>(distance); });
      }
    });
  });
}

CPU_KERNEL(hamming_distance, "plain") {
  return dispatch<kInt>(request.in(0).dtype, [&]<typename T>() {
    return make_hamming<std::make_unsigned_t<T>>(request);
  });
}

}  // namespace

}  // namespace anymps::cpu
