// SPDX-License-Identifier: Apache-2.0
// Einstein's summation by its definition: for each output, a sum over all places of the rest.
#include "semantics/einsum.h"
#include "drivers/reference/dense.h"

namespace anymps {

REFERENCE(einsum) {
  const View& y = args.out[0];
  std::vector<size_t> ranks;
  for (const View& x : args.in) ranks.push_back(x.shape().size());
  const Einsum einsum = Einsum::parse(args.attrs.s("equation"), ranks);
  Shape extents(einsum.labels, 1);
  for (size_t i = 0; i < ranks.size(); ++i)
    for (size_t k = 0; k < ranks[i]; ++k)
      if (const int64_t extent = args.in[i].shape()[k]; extent != 1)
        extents[einsum.inputs[i][k]] = extent;
  Shape summed;  // extents of the labels that the output does not have
  std::vector<size_t> rest;
  for (size_t label = 0; label < einsum.labels; ++label)
    if (!einsum.in_output(label)) {
      rest.push_back(label);
      summed.push_back(extents[label]);
    }
  with_accumulator(y.dtype, [&]<typename A>() {
    std::vector<std::vector<A>> xs;
    std::vector<Strides> strides;
    for (const View& x : args.in) {
      xs.push_back(read_dense<A>(x));
      strides.push_back(contiguous_strides(x.shape()));
    }
    std::vector<A> results;
    Shape places(einsum.labels, 0);
    for_each_index(y.shape(), [&](const Shape& at) {
      for (size_t k = 0; k < at.size(); ++k) places[einsum.output[k]] = at[k];
      A sum{};
      for_each_index(summed, [&](const Shape& inner) {
        for (size_t k = 0; k < rest.size(); ++k) places[rest[k]] = inner[k];
        A product(1);
        for (size_t i = 0; i < xs.size(); ++i) {
          int64_t from = 0;
          for (size_t k = 0; k < ranks[i]; ++k)
            if (args.in[i].shape()[k] != 1) from += places[einsum.inputs[i][k]] * strides[i][k];
          product *= xs[i][from];
        }
        sum += product;
      });
      results.push_back(sum);
    });
    write_dense(y, results);
  });
}

}  // namespace anymps
