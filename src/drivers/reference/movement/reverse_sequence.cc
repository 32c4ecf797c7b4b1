// SPDX-License-Identifier: Apache-2.0
// Reference kernel of sequences that are turned round.
#include "drivers/reference/move.h"

namespace anymps {

REFERENCE(reverse_sequence) {
  const View &x = args.in[0], &lengths = args.in[1], &y = args.out[0];
  const size_t time = normalize_axis(args.attrs.i("time_axis"), x.rank(), "reverse_sequence");
  const size_t batch = normalize_axis(args.attrs.i("batch_axis"), x.rank(), "reverse_sequence");
  move_elements(x, y, [&](const Shape& index) {
    const int64_t length = load_int(lengths, index[batch] * lengths.stride(0));
    require(length >= 0 && length <= x.shape()[time],
            "[reverse_sequence] length {} of sequence {} is not in [0, {}]", length, index[batch],
            x.shape()[time]);
    Shape from = index;
    if (from[time] < length) from[time] = length - 1 - from[time];
    return from;
  });
}

}  // namespace anymps
