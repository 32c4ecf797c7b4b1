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

  std::vector<double> y(args.out[0].count());
  std::vector<double> scores(keys), sums;
  for_each_index(Shape{scores_shape[0], scores_shape[1], queries}, [&](const Shape& at) {
    const int64_t head = at[0] * scores_shape[1] + at[1], s = at[2];
    double most = minus_infinity;
    for (int64_t t = 0; t < keys; ++t) {
      double score = 0;
      for (int64_t d = 0; d < depth; ++d)
        score += q[(head * queries + s) * depth + d] * k[(head * keys + t) * depth + d];
      score *= scale;
      if (mask) {
        const double value = load_double(args.in[3], (*mask)({at[0], at[1], s, t}));
        if (args.in[3].dtype != DType::kBool)
          score += value;
        else if (value == 0)
          score = minus_infinity;
      }
      if (causal && t > s) score = minus_infinity;
      scores[t] = score;
      most = std::isnan(score) || score > most ? score : most;
    }
    sums.push_back(minus_infinity);
    if (most == minus_infinity) return;  // no key is kept: y stays 0
    double sum = 0;
    for (double& score : scores) sum += score = std::exp(score - most);
    sums.back() = most + std::log(sum);
    double* out = y.data() + (head * queries + s) * width;
    for (int64_t t = 0; t < keys; ++t)
      for (int64_t d = 0; d < width; ++d)
        out[d] += scores[t] / sum * v[(head * keys + t) * width + d];
  });
  write_dense(args.out[0], y);
  if (args.out.size() > 1) write_dense(args.out[1], sums);
}

REFERENCE(sdpa_gradient) {
  const std::vector<double> dy = read_dense<double>(args.in[0]), q = read_dense<double>(args.in[1]),
                            k = read_dense<double>(args.in[2]), v = read_dense<double>(args.in[3]),
                            y = read_dense<double>(args.in[4]);
  const Shape& shape = args.in[1].shape();
  const size_t heads = shape[0] * shape[1];
  const size_t queries = shape[2], depth = shape[3];
  const size_t keys = args.in[2].extent(2), width = args.in[3].extent(3);
  const double asked = args.attrs.f("scale"), minus_infinity = -INFINITY;
  const double scale = asked != 0 ? asked : 1 / std::sqrt(static_cast<double>(depth));
  std::vector<double> sums, dq(q.size(), 0.0), dk(k.size(), 0.0), dv(v.size(), 0.0);
  if (args.has(5)) sums = read_dense<double>(args.in[5]);
  std::optional<BroadcastOffset> mask;
  if (args.has(6))
    mask.emplace(args.in[6], Shape{shape[0], shape[1], shape[2], static_cast<int64_t>(keys)});
  std::vector<double> p(keys);
  for (size_t row = 0; row < heads * queries; ++row) {
    const size_t head = row / queries, s = row % queries;
    const double *own = q.data() + row * depth, *slope = dy.data() + row * width;
    double most = minus_infinity, delta = 0;
    for (size_t t = 0; t < keys; ++t) {
      p[t] = 0;
      for (size_t d = 0; d < depth; ++d) p[t] += own[d] * k[(head * keys + t) * depth + d];
      p[t] *= scale;
      if (mask) {
        const auto h = static_cast<int64_t>(head);
        const double value =
            load_double(args.in[6], (*mask)({h / shape[1], h % shape[1], static_cast<int64_t>(s),
                                             static_cast<int64_t>(t)}));
        if (args.in[6].dtype != DType::kBool)
          p[t] += value;
        else if (value == 0)
          p[t] = minus_infinity;
      }
      if (args.attrs.b("causal") && t > s) p[t] = minus_infinity;
      most = std::isnan(p[t]) || p[t] > most ? p[t] : most;
    }
    double log_sum = minus_infinity;
    if (args.has(5)) {
      log_sum = sums[row];
    } else if (most != minus_infinity) {
      double sum = 0;
      for (const double score : p) sum += std::exp(score - most);
      log_sum = most + std::log(sum);
    }
    if (log_sum == minus_infinity) continue;  // no key is kept
    for (size_t d = 0; d < width; ++d) delta += slope[d] * y[row * width + d];
    for (size_t t = 0; t < keys; ++t) {
      const double weight = std::exp(p[t] - log_sum);
      const size_t key = head * keys + t;
      double dp = 0;
      for (size_t d = 0; d < width; ++d) {
        dp += slope[d] * v[key * width + d];
        dv[key * width + d] += weight * slope[d];
      }
      const double ds = weight * (dp - delta) * scale;
      for (size_t d = 0; d < depth; ++d) {
        dq[row * depth + d] += ds * k[key * depth + d];
        dk[key * depth + d] += ds * own[d];
      }
    }
  }
  write_dense(args.out[0], dq);
  if (args.out.size() > 1) write_dense(args.out[1], dk);
  if (args.out.size() > 2) write_dense(args.out[2], dv);
}

}  // namespace anymps
