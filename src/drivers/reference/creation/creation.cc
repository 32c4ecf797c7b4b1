// SPDX-License-Identifier: Apache-2.0
// Tensors from a few numbers: range, fill, eye_like, one_hot.
#include <cmath>

#include "drivers/reference/move.h"
#include "semantics/elements.h"
#include "semantics/scalar_functions.h"

namespace anymps {

REFERENCE(range) {
  const View& y = args.out[0];
  dispatch<kReal>(y.dtype, [&]<typename T>() {
    using C = Compute<T>;
    const C start = static_cast<C>(*args.in[0].as<T>()),
            delta = static_cast<C>(*args.in[2].as<T>());
    for (int64_t i = 0; i < y.extent(0); ++i) {
      if constexpr (std::is_integral_v<T>) {
        const uint64_t sum =
            static_cast<uint64_t>(start) + static_cast<uint64_t>(i) * static_cast<uint64_t>(delta);
        y.at<T>({i}) = static_cast<T>(sum);
      } else {
        y.at<T>({i}) = static_cast<T>(start + static_cast<C>(i) * delta);
      }
    }
  });
}

REFERENCE(fill) {
  const View& y = args.out[0];
  const double number = args.attrs.f("value"), imaginary = args.attrs.f("imaginary");
  for_each_index(y.shape(), [&](const Shape& index) {
    if (args.has(1)) return move_element(y, y.offset(index), args.in[1], 0);
    char* element = y.data + y.offset(index) * static_cast<int64_t>(size_of(y.dtype));
    store_number(y.dtype, number, element);
    if (is_complex(y.dtype))
      dispatch<kComplex>(y.dtype,
                         [&]<typename T>() { y.at<T>(index) = T(WideComplex(number, imaginary)); });
  });
}

REFERENCE(eye_like) {
  const View& y = args.out[0];
  const int64_t k = args.attrs.i("k");
  dispatch<kAny>(y.dtype, [&]<typename T>() {
    for_each_index(y.shape(), [&](const Shape& index) {
      y.at<T>(index) = scalar::convert<T>(static_cast<int32_t>(index[1] - index[0] == k));
    });
  });
}

REFERENCE(one_hot) {
  const View &indices = args.in[0], &values = args.in[2], &y = args.out[0];
  const int64_t axis = normalize_axis(args.attrs.i("axis"), y.rank(), "one_hot");
  const int64_t depth = y.extent(axis);
  require_shape(args, indices.rank() + 1 == y.rank());
  for_each_index(y.shape(), [&](const Shape& index) {
    Shape place = index;
    place.erase(axis);
    double at = std::trunc(load_double(indices, indices.offset(place)));
    if (at < 0) at += static_cast<double>(depth);
    const bool on = at == static_cast<double>(index[axis]);
    move_element(y, y.offset(index), values, on ? values.stride(0) : 0);
  });
}

}  // namespace anymps
