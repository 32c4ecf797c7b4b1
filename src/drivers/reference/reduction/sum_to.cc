// SPDX-License-Identifier: Apache-2.0

#include "drivers/reference/dense.h"

namespace anymps {

REFERENCE(sum_to) {
  const View &x = args.in[0], &y = args.out[0];
  const Shape& shape = y.shape();
  const size_t lead = x.shape().size() - shape.size();
  const Strides flat = contiguous_strides(shape);
  with_accumulator(x.dtype, [&]<typename A>() {
    const std::vector<A> elements = read_dense<A>(x);
    std::vector<A> sums(y.count());
    size_t next = 0;
    for_each_index(x.shape(), [&](const Shape& index) {
      int64_t at = 0;
      for (size_t i = 0; i < shape.size(); ++i)
        if (shape[i] != 1) at += index[lead + i] * flat[i];
      sums[at] += elements[next++];
    });
    write_dense(y, sums);
  });
}

}  // namespace anymps
