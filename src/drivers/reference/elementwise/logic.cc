// SPDX-License-Identifier: Apache-2.0
// Reference kernels of choices.
#include "drivers/reference/elementwise/elementwise.h"
#include "drivers/reference/move.h"

namespace anymps {

REFERENCE(where) {
  const View &cond = args.in[0], &a = args.in[1], &b = args.in[2], &y = args.out[0];
  const BroadcastOffset which(cond, y.shape()), from_a(a, y.shape()), from_b(b, y.shape());
  for_each_index(y.shape(), [&](const Shape& index) {
    const bool first = load<bool>(cond, which(index));
    move_element(y, y.offset(index), first ? a : b, first ? from_a(index) : from_b(index));
  });
}

REFERENCE(clamp) {
  dispatch<kReal>(args.out[0].dtype, [&]<typename T>() {
    // A bound from an attribute is a tensor of one element.
    const auto bound = [&](const char* attr) {
      const double value = args.attrs.f(attr);
      if constexpr (std::is_integral_v<T>)
        return scalar::saturate<T>(value);
      else
        return static_cast<T>(static_cast<Compute<T>>(value));
    };
    T low = bound("min"), high = bound("max");
    const Shape scalar_shape{};
    const Strides scalar_strides{};
    const auto view = [&](size_t input, T& value) {
      return args.has(input) ? args.in[input]
                             : View{args.out[0].dtype, reinterpret_cast<char*>(&value),
                                    &scalar_shape, &scalar_strides};
    };
    const std::array<View, 3> in = {args.in[0], view(1, low), view(2, high)};
    map_elements<T, T, T, T>({args.op, args.attrs, in, args.out}, scalar::clamp);
  });
}

}  // namespace anymps
