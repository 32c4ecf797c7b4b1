// SPDX-License-Identifier: Apache-2.0
// Tensors from a few numbers: range and fill.
#include <cstring>

#include "drivers/cpu/threads.h"
#include "drivers/kernel.h"

namespace anymps::cpu {

namespace {

KernelPtr make_range(const KernelRequest& request, std::string& why) {
  const TensorDesc& y = request.out();
  if (!y.contiguous()) return refuse(why, "y is not contiguous");
  return make_kernel([dtype = y.dtype, count = y.count()](const KernelArgs& args) {
    dispatch<kReal>(dtype, [&]<typename T>() {
      using C = Compute<T>;
      const C start = static_cast<C>(*static_cast<const T*>(args.inputs[0])),
              delta = static_cast<C>(*static_cast<const T*>(args.inputs[2]));
      T* to = static_cast<T*>(args.outputs[0]);
      parallel_for(0, count, 0.5, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          if constexpr (std::is_integral_v<T>)  // wraps
            to[i] = static_cast<T>(static_cast<uint64_t>(start) +
                                   static_cast<uint64_t>(i) * static_cast<uint64_t>(delta));
          else
            to[i] = static_cast<T>(start + static_cast<C>(i) * delta);
        }
      });
    });
  });
}

KernelPtr make_fill(const KernelRequest& request, std::string& why) {
  const TensorDesc& y = request.out();
  if (!y.contiguous()) return refuse(why, "y is not contiguous");
  if (!contains(kAny, y.dtype)) return refuse(why, fmt::format("dtype {}", name(y.dtype)));
  return make_kernel([dtype = y.dtype, count = y.count(), from_input = request.has(1),
                      number = request.attrs.f("value"),
                      imaginary = request.attrs.f("imaginary")](const KernelArgs& args) {
    dispatch<kAny>(dtype, [&]<typename T>() {
      T value{};
      if (from_input)
        std::memcpy(&value, args.inputs[1], sizeof(T));
      else if constexpr (std::is_same_v<T, Complex>)
        value = Complex(static_cast<float>(number), static_cast<float>(imaginary));
      else
        value = static_cast<T>(static_cast<Compute<T>>(number));
      T* to = static_cast<T*>(args.outputs[0]);
      parallel_for(0, count, 0.1,
                   [&](int64_t begin, int64_t end) { std::fill(to + begin, to + end, value); });
    });
  });
}

const KernelRegistrar kRange("cpu", "range", "plain", 10, make_range);
const KernelRegistrar kFill("cpu", "fill", "plain", 10, make_fill);

}  // namespace

}  // namespace anymps::cpu
