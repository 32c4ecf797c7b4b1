// SPDX-License-Identifier: Apache-2.0
// Reference kernel of sparse matrices made dense.
#include "drivers/reference/dense.h"

namespace anymps {

REFERENCE(sparse_to_dense) {
  const View &values = args.in[0], &index0 = args.in[1], &index1 = args.in[2], &y = args.out[0];
  const std::string& storage = args.attrs.s("storage");
  const int64_t count = values.extent(0);
  const auto at = [](const View& view, int64_t i) { return load_int(view, i * view.stride(0)); };
  std::vector<std::pair<int64_t, int64_t>> places;  // rows and columns
  if (storage == "coo") {
    for (int64_t i = 0; i < count; ++i) places.emplace_back(at(index1, i), at(index0, i));
  } else {
    const int64_t lines = index1.extent(0) - 1;
    require(at(index1, 0) == 0 && at(index1, lines) == count,
            "[sparse_to_dense] the starts must go from 0 to {}", count);
    for (int64_t line = 0; line < lines; ++line) {
      require(at(index1, line) <= at(index1, line + 1) && at(index1, line + 1) <= count,
              "[sparse_to_dense] start {} lies after start {}", line, line + 1);
      for (int64_t i = at(index1, line); i < at(index1, line + 1); ++i)
        places.emplace_back(storage == "csr" ? line : at(index0, i),
                            storage == "csr" ? at(index0, i) : line);
    }
  }
  with_accumulator(y.dtype, [&]<typename A>() {
    const std::vector<A> elements = read_dense<A>(values);
    std::vector<A> sums(y.count(), A(0));
    for (size_t i = 0; i < places.size(); ++i) {
      const auto [row, column] = places[i];
      require(row >= 0 && row < y.extent(0) && column >= 0 && column < y.extent(1),
              "[sparse_to_dense] place ({}, {}) is outside {}", row, column, to_string(y.shape()));
      sums[row * y.extent(1) + column] += elements[i];
    }
    write_dense(y, sums);
  });
}

}  // namespace anymps
