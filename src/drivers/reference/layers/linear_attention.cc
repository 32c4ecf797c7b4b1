// SPDX-License-Identifier: Apache-2.0
// Linear attention by its definition: one place after the other, one state a head.
#include <cmath>

#include "drivers/reference/dense.h"

namespace anymps {

REFERENCE(linear_attention) {
  using Index = size_t;
  const std::vector<double> q = read_dense<double>(args.in[0]), k = read_dense<double>(args.in[1]),
                            v = read_dense<double>(args.in[2]);
  const auto batches = static_cast<Index>(args.in[0].extent(0)),
             length = static_cast<Index>(args.in[0].extent(1));
  const auto queries = static_cast<Index>(args.attrs.i("query_heads")),
             heads = static_cast<Index>(args.attrs.i("heads"));
  const Index depth = static_cast<Index>(args.in[1].extent(2)) / heads,
              width = static_cast<Index>(args.in[2].extent(2)) / heads, shared = queries / heads;
  const double asked = args.attrs.f("scale");
  const double scale = asked != 0 ? asked : 1 / std::sqrt(static_cast<double>(depth));
  std::vector<double> state(batches * heads * depth * width), decay, beta;
  if (args.has(3)) state = read_dense<double>(args.in[3]);
  if (args.has(4)) decay = read_dense<double>(args.in[4]);
  if (args.has(5)) beta = read_dense<double>(args.in[5]);
  const Index decays = args.has(4) ? static_cast<Index>(args.in[4].extent(2)) : 0,
              betas = args.has(5) ? static_cast<Index>(args.in[5].extent(2)) : 0;

  std::vector<double> y(batches * length * queries * width), value(width);
  for (Index b = 0; b < batches; ++b) {
    for (Index t = 0; t < length; ++t) {
      const Index place = b * length + t;
      for (Index h = 0; h < heads; ++h) {
        double* s = state.data() + (b * heads + h) * depth * width;
        const double* key = k.data() + (place * heads + h) * depth;
        for (Index d = 0; d < depth && decays > 0; ++d) {
          const double g = decay[place * decays + (decays == heads ? h : h * depth + d)];
          for (Index m = 0; m < width; ++m) s[d * width + m] *= std::exp(g);
        }
        for (Index m = 0; m < width; ++m) {
          value[m] = v[(place * heads + h) * width + m];
          if (betas == 0) continue;
          double known = 0;
          for (Index d = 0; d < depth; ++d) known += s[d * width + m] * key[d];
          value[m] = beta[place * betas + (betas == heads ? h : 0)] * (value[m] - known);
        }
        for (Index d = 0; d < depth; ++d)
          for (Index m = 0; m < width; ++m) s[d * width + m] += key[d] * value[m];
        for (Index n = h * shared; n < (h + 1) * shared; ++n)
          for (Index m = 0; m < width; ++m) {
            double sum = 0;
            for (Index d = 0; d < depth; ++d)
              sum += q[(place * queries + n) * depth + d] * s[d * width + m];
            y[(place * queries + n) * width + m] = scale * sum;
          }
      }
    }
  }
  write_dense(args.out[0], y);
  if (args.out.size() > 1) write_dense(args.out[1], state);
}

}  // namespace anymps
