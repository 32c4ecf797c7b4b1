// SPDX-License-Identifier: Apache-2.0
// Reference kernels of parts of matrices and of sequences.
#include "drivers/reference/lines.h"
#include "drivers/reference/move.h"

namespace anymps {

REFERENCE(band_part) {
  const View &x = args.in[0], &y = args.out[0];
  const int64_t lower = int_of(args, 1, "lower"), upper = int_of(args, 2, "upper");
  const auto size = static_cast<int64_t>(size_of(y.dtype));
  for_each_index(y.shape(), [&](const Shape& index) {
    const int64_t below = index[index.size() - 2] - index.back();
    if ((lower < 0 || below <= lower) && (upper < 0 || -below <= upper))
      move_element(y, y.offset(index), x, x.offset(index));
    else
      std::memset(y.data + y.offset(index) * size, 0, static_cast<size_t>(size));
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

REFERENCE(reverse_sequence) {
  const View &x = args.in[0], &lengths = args.in[1], &y = args.out[0];
  const auto time =
      static_cast<size_t>(normalize_axis(args.attrs.i("time_axis"), x.rank(), "reverse_sequence"));
  const auto batch =
      static_cast<size_t>(normalize_axis(args.attrs.i("batch_axis"), x.rank(), "reverse_sequence"));
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

REFERENCE(hamming_distance) {
  const View &a = args.in[0], &b = args.in[1], &y = args.out[0];
  const int64_t last_a = a.extent(a.rank() - 1), last_b = b.extent(b.rank() - 1);
  Shape whole = y.shape();
  whole.push_back(last_a == 1 ? last_b : last_a);
  const BroadcastOffset at_a(a, whole), at_b(b, whole);
  dispatch<kInt>(a.dtype, [&]<typename T>() {
    for_each_index(y.shape(), [&](const Shape& index) {
      Shape full = index;
      full.push_back(0);
      int64_t distance = 0;
      for (int64_t k = 0; k < whole.back(); ++k) {
        full.back() = k;
        const auto different =
            static_cast<std::make_unsigned_t<T>>(a.as<T>()[at_a(full)] ^ b.as<T>()[at_b(full)]);
        distance += std::popcount(different);
      }
      dispatch<kReal>(y.dtype,
                      [&]<typename To>() { y.at<To>(index) = scalar::convert<To>(distance); });
    });
  });
}

}  // namespace anymps
