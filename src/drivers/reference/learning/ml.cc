// SPDX-License-Identifier: Apache-2.0
// Decision trees, walked one after the other for one row after the other; classes from pairs.
#include "drivers/reference/dense.h"
#include "semantics/tree_ensemble.h"

namespace anymps {

namespace {

int64_t checked(int64_t at, int64_t count, const char* what) {
  require(at >= 0 && at < count, "[tree_ensemble] {} {} does not exist, there are {}", what, at,
          count);
  return at;
}

}  // namespace

REFERENCE(tree_ensemble) {
  const View &x = args.in[0], &nodes = args.in[1], &splits = args.in[2], &roots = args.in[3],
             &leaves = args.in[4], &pair_targets = args.in[5], &weights = args.in[6];
  const int64_t targets = args.attrs.i("targets"), leaf_count = leaves.extent(0) - 1;
  const std::string& aggregate = args.attrs.s("aggregate");
  std::vector<double> y(args.out[0].count());
  std::vector<bool> given(y.size());
  for (int64_t n = 0; n < x.extent(0); ++n) {
    for (int64_t tree = 0; tree < roots.extent(0); ++tree) {
      int64_t at = roots.at<int64_t>({tree});
      for (int64_t steps = 0; at >= 0; ++steps) {
        checked(at, nodes.extent(0), "node");
        require(steps <= nodes.extent(0), "[tree_ensemble] tree {} goes in a circle", tree);
        const int64_t feature = checked(nodes.at<int64_t>({at, 0}), x.extent(1), "feature");
        const double value = load_double(x, x.offset(std::initializer_list<int64_t>{n, feature}));
        const double split = load_double(splits, at * splits.stride(0));
        const bool yes = branch_holds(nodes.at<int64_t>({at, 1}), value, split) ||
                         (value != value && nodes.at<int64_t>({at, 4}) != 0);
        at = nodes.at<int64_t>({at, yes ? 2 : 3});
      }
      const int64_t leaf = checked(-1 - at, leaf_count, "leaf");
      for (int64_t i = leaves.at<int64_t>({leaf}); i < leaves.at<int64_t>({leaf + 1}); ++i) {
        checked(i, weights.extent(0), "weight");
        const int64_t target = checked(pair_targets.at<int64_t>({i}), targets, "target");
        const size_t place = n * targets + target;
        const double weight = load_double(weights, i * weights.stride(0));
        if (aggregate == "min" && given[place])
          y[place] = std::min(y[place], weight);
        else if (aggregate == "max" && given[place])
          y[place] = std::max(y[place], weight);
        else
          y[place] += weight;
        given[place] = true;
      }
    }
  }
  if (aggregate == "average")
    for (double& sum : y) sum /= static_cast<double>(std::max<int64_t>(1, roots.extent(0)));
  write_dense(args.out[0], y);
}

namespace {

// r[i * k + j]: the probability of i against j.
std::vector<double> couple(const std::vector<double>& r, size_t k) {
  const auto q = [&](size_t i, size_t j) {
    if (i != j) return -r[j * k + i] * r[i * k + j];
    double sum = 0;
    for (size_t other = 0; other < k; ++other)
      if (other != i) sum += r[other * k + i] * r[other * k + i];
    return sum;
  };
  std::vector<double> p(k, 1 / static_cast<double>(k)), qp(k);
  for (size_t round = 0; round < std::max<size_t>(100, k); ++round) {
    double pqp = 0, error = 0;
    for (size_t i = 0; i < k; ++i) {
      qp[i] = 0;
      for (size_t j = 0; j < k; ++j) qp[i] += q(i, j) * p[j];
      pqp += p[i] * qp[i];
    }
    for (size_t i = 0; i < k; ++i) error = std::max(error, std::abs(qp[i] - pqp));
    if (error < 0.005 / static_cast<double>(k)) break;
    for (size_t i = 0; i < k; ++i) {
      const double own = q(i, i), step = (pqp - qp[i]) / own;
      p[i] += step;
      pqp = (pqp + step * (step * own + 2 * qp[i])) / (1 + step) / (1 + step);
      for (size_t j = 0; j < k; ++j) {
        qp[j] = (qp[j] + step * q(i, j)) / (1 + step);
        p[j] /= 1 + step;
      }
    }
  }
  return p;
}

}  // namespace

REFERENCE(pair_coupling) {
  const size_t k = args.attrs.i("classes");
  const std::vector<double> pairs = read_dense<double>(args.in[0]);
  const size_t rows = args.in[0].extent(0), count = k * (k - 1) / 2;
  std::vector<double> y;
  for (size_t n = 0; n < rows; ++n) {
    std::vector<double> r(k * k);
    size_t at = n * count;
    for (size_t i = 0; i < k; ++i)
      for (size_t j = i + 1; j < k; ++j) {
        r[i * k + j] = pairs[at++];
        r[j * k + i] = 1 - r[i * k + j];
      }
    const std::vector<double> p = couple(r, k);
    y.insert(y.end(), p.begin(), p.end());
  }
  write_dense(args.out[0], y);
}

}  // namespace anymps
