// SPDX-License-Identifier: Apache-2.0
// Reference kernels of ops that look at a float's parts.
#include <bit>

#include "drivers/reference/elementwise/elementwise.h"
#include "ops/elementwise/parameters.h"
#include "semantics/pair_functions.h"

namespace anymps {

namespace {

// One step in the bits: those of positive numbers count up with the number.
template <typename T>
T next_half(T from, T to) {
  const auto a = static_cast<float>(from), b = static_cast<float>(to);
  if (std::isnan(a) || std::isnan(b)) return T(std::numeric_limits<float>::quiet_NaN());
  if (a == b) return to;
  auto bits = std::bit_cast<uint16_t>(from);
  if (a == 0)
    bits = static_cast<uint16_t>(b > 0 ? 0x0001 : 0x8001);
  else
    bits = static_cast<uint16_t>((a < b) == (a > 0) ? bits + 1 : bits - 1);
  return std::bit_cast<T>(bits);
}

}  // namespace

REFERENCE(nan_to_num) {
  std::vector<double> numbers = number_attrs(args.op, args.attrs);
  const double largest = scalar::largest_finite(args.in[0].dtype);
  if (std::isinf(numbers[1])) numbers[1] = largest;
  if (std::isinf(numbers[2])) numbers[2] = -largest;
  map_unary<kFloat>(
      args, [=](double x) { return scalar::nan_to_num(x, numbers[0], numbers[1], numbers[2]); });
}

REFERENCE(nextafter) {
  const View& out = args.out[0];
  const BroadcastOffset a(args.in[0], out.shape()), b(args.in[1], out.shape());
  dispatch<kFloat>(out.dtype, [&]<typename T>() {
    for_each_index(out.shape(), [&](const Shape& at) {
      const T from = load<T>(args.in[0], a(at)), to = load<T>(args.in[1], b(at));
      if constexpr (sizeof(T) == 2)
        out.at<T>(at) = next_half(from, to);
      else
        out.at<T>(at) = std::nextafter(from, to);
    });
  });
}

REFERENCE(frexp) {
  const View& x = args.in[0];
  dispatch<kFloat>(x.dtype, [&]<typename T>() {
    for_each_index(x.shape(), [&](const Shape& at) {
      const double value = widen(x.at<T>(at));
      int exponent = 0;
      const double fraction = std::isfinite(value) ? std::frexp(value, &exponent) : value;
      args.out[0].at<T>(at) = narrow<T>(fraction);
      if (args.out.size() > 1) args.out[1].at<int32_t>(at) = exponent;
    });
  });
}

}  // namespace anymps
