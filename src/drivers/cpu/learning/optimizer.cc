// SPDX-License-Identifier: Apache-2.0
// The steps of Adam on the CPU: elements are shared out among threads.
#include <cmath>

#include "drivers/cpu/cpu_kernel.h"
#include "drivers/cpu/threads.h"
#include "semantics/scalar_functions.h"

namespace anymps::cpu {

namespace {

CPU_KERNEL(adam, "elements") {
  const TensorDesc& x = request.in(0);
  if (x.dtype != DType::kF32 && x.dtype != DType::kF64)
    return refuse(why, fmt::format("values are {}", name(x.dtype)));
  const bool maximum = request.has(8), powers = request.has(9);
  for (size_t i : {size_t{0}, size_t{1}, size_t{2}, size_t{3}, size_t{8}})
    if (request.has(i) && !request.in(i).contiguous())
      return refuse(why, "a tensor is not contiguous");
  for (const TensorDesc& output : request.outputs)
    if (!output.contiguous()) return refuse(why, "an output is not contiguous");
  const int64_t count = x.count();
  const size_t outputs = request.outputs.size();
  constexpr DTypeSet kTypes = bit(DType::kF32) | bit(DType::kF64);
  return dispatch<kTypes>(x.dtype, [&]<typename T>() {
    return make_kernel([=](const KernelArgs& args) {
      const auto number = [&](size_t i) {
        return static_cast<double>(*static_cast<const T*>(args.inputs[i]));
      };
      const auto in = [&](size_t i) { return static_cast<const T*>(args.inputs[i]); };
      double rate = number(4);
      const double beta1 = number(5), beta2 = number(6), epsilon = number(7);
      if (powers) rate *= std::sqrt(1 - number(10)) / (1 - number(9));
      parallel_for(0, count, 5, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const double gradient = in(1)[i];
          const double m = beta1 * in(2)[i] + (1 - beta1) * gradient;
          const double v = beta2 * in(3)[i] + (1 - beta2) * gradient * gradient;
          const double highest = maximum ? scalar::max(static_cast<double>(in(8)[i]), v, true) : v;
          const double results[] = {in(0)[i] - rate * m / (std::sqrt(highest) + epsilon), m, v,
                                    highest};
          for (size_t k = 0; k < outputs; ++k)
            static_cast<T*>(args.outputs[k])[i] = static_cast<T>(results[k]);
        }
      });
    });
  });
}

}  // namespace

}  // namespace anymps::cpu
