// SPDX-License-Identifier: Apache-2.0
// Products with weights of 8 or 4 bits, each widened by itself.
#include "drivers/reference/dense.h"

namespace anymps {

REFERENCE(weight_only_matmul) {
  const Shape& shape = args.in[0].shape();
  const int64_t depth = shape.back(), columns = args.in[1].shape()[0];
  const int64_t bits = args.attrs.i("bits"), group = args.attrs.i("group");
  const std::vector<double> x = read_dense<double>(args.in[0]), w = read_dense<double>(args.in[1]),
                            scales = read_dense<double>(args.in[2]),
                            zeros = read_or_zero(args, 3, std::ssize(scales));
  const auto weight = [&](int64_t n, int64_t k) {
    const int64_t at = (group == 0 ? 0 : k / group) * columns + n;
    double stored = 0;
    if (bits == 8) {
      stored = w[n * depth + k];
    } else {
      const auto both = static_cast<int64_t>(w[(n * depth + k) / 2]) & 255;
      stored = static_cast<double>((k % 2 == 0 ? both >> 4 : both & 15) - 8);
    }
    return stored * scales[at] + zeros[at];
  };
  std::vector<double> y(args.out[0].count());
  for (int64_t i = 0; i < std::ssize(y); ++i)
    for (int64_t k = 0; k < depth; ++k) y[i] += x[i / columns * depth + k] * weight(i % columns, k);
  write_dense(args.out[0], y);
}

}  // namespace anymps
