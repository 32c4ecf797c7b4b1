// SPDX-License-Identifier: Apache-2.0
// Attention by its definition, one query at a time.
#include <cmath>
#include <limits>

#include "drivers/reference/dense.h"

namespace anymps {

REFERENCE(sdpa) {
  const std::vector<double> q = read_dense<double>(args.in[0]), k = read_dense<double>(args.in[1]),
                            v = read_dense<double>(args.in[2]);
  const int64_t queries = args.in[0].extent(2), depth = args.in[0].extent(3);
  const int64_t keys = args.in[1].extent(2), width = args.in[2].extent(3);
  const Shape scores_shape{args.in[0].extent(0), args.in[0].extent(1), queries, keys};
  const double asked = args.attrs.f("scale");
  const double scale = asked != 0 ? asked : 1 / std::sqrt(static_cast<double>(depth));
  const double minus_infinity = -std::numeric_limits<double>::infinity();
  const bool causal = args.attrs.b("causal");
  std::optional<BroadcastOffset> mask;
  if (args.has(3)) mask.emplace(args.in[3], scores_shape);

  std::vector<double> y(static_cast<size_t>(args.out[0].count()));
  std::vector<double> scores(static_cast<size_t>(keys));
  for_each_index(Shape{scores_shape[0], scores_shape[1], queries}, [&](const Shape& at) {
    const int64_t head = at[0] * scores_shape[1] + at[1], s = at[2];
    double most = minus_infinity;
    for (int64_t t = 0; t < keys; ++t) {
      double score = 0;
      for (int64_t d = 0; d < depth; ++d)
        score += q[static_cast<size_t>((head * queries + s) * depth + d)] *
                 k[static_cast<size_t>((head * keys + t) * depth + d)];
      score *= scale;
      if (mask) {
        const double value = load_double(args.in[3], (*mask)({at[0], at[1], s, t}));
        if (args.in[3].dtype != DType::kBool)
          score += value;
        else if (value == 0)
          score = minus_infinity;
      }
      if (causal && t > s) score = minus_infinity;
      scores[static_cast<size_t>(t)] = score;
      most = std::isnan(score) || score > most ? score : most;
    }
    if (most == minus_infinity) return;  // no key is kept: y stays 0
    double sum = 0;
    for (double& score : scores) sum += score = std::exp(score - most);
    double* out = y.data() + (head * queries + s) * width;
    for (int64_t t = 0; t < keys; ++t)
      for (int64_t d = 0; d < width; ++d)
        out[d] += scores[static_cast<size_t>(t)] / sum *
                  v[static_cast<size_t>((head * keys + t) * width + d)];
  });
  write_dense(args.out[0], y);
}

}  // namespace anymps
