// SPDX-License-Identifier: Apache-2.0
// Normalization by its definition, in double.
#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>

#include "drivers/reference/dense.h"

namespace anymps {

namespace {

struct Statistics {
  double mean = 0, inv_std = 0;
};

Statistics statistics(const double* values, int64_t count, double epsilon) {
  double sum = 0, squares = 0;
  for (int64_t i = 0; i < count; ++i) sum += values[i];
  const double mean = sum / static_cast<double>(count);
  for (int64_t i = 0; i < count; ++i) squares += (values[i] - mean) * (values[i] - mean);
  return {mean, 1 / std::sqrt(squares / static_cast<double>(count) + epsilon)};
}

// An optional parameter read with broadcasting to x, dense in x's order.
std::vector<double> parameter(const ReferenceArgs& args, size_t i, double absent) {
  const Shape& shape = args.in[0].shape();
  if (!args.has(i)) return std::vector<double>(element_count(shape), absent);
  std::vector<double> values;
  const BroadcastOffset offset(args.in[i], shape);
  for_each_index(shape,
                 [&](const Shape& at) { values.push_back(load_double(args.in[i], offset(at))); });
  return values;
}

// x as rows of the axes from `axis` on, in double.
struct NormRows {
  explicit NormRows(const ReferenceArgs& args) : x(read_dense<double>(args.in[0])) {
    const Shape& shape = args.in[0].shape();
    const int64_t axis =
        normalize_axis(args.attrs.i("axis"), args.in[0].rank(), args.op.name.c_str());
    count = element_count(Shape(shape.begin(), shape.begin() + axis));
    length = element_count(Shape(shape.begin() + axis, shape.end()));
  }
  double* row(int64_t r) { return x.data() + r * length; }

  std::vector<double> x;
  int64_t count, length;
};

int64_t channel_axis(const ReferenceArgs& args) {
  return normalize_axis(args.attrs.i("axis"), args.in[0].rank(), args.op.name.c_str());
}

// Group and instance normalization: `groups` of consecutive channels in each image.
void normalize_channels(const ReferenceArgs& args, int64_t groups) {
  const Shape& shape = args.in[0].shape();
  std::vector<double> x = read_dense<double>(args.in[0]);
  const int64_t axis = channel_axis(args), channels = shape[axis];
  const auto extents = [&](int64_t from, int64_t to) {
    return element_count(Shape(shape.begin() + from, shape.begin() + to));
  };
  const int64_t inner = extents(axis + 1, std::ssize(shape)), image = extents(1, std::ssize(shape));
  const auto vector = [&](size_t i, double absent) {
    return args.has(i) ? read_dense<double>(args.in[i]) : std::vector<double>(channels, absent);
  };
  const std::vector<double> gamma = vector(1, 1), beta = vector(2, 0);
  // The elements of each group, in their order in memory.
  std::vector<std::vector<double>> members(shape[0] * groups);
  const auto group_of = [&](size_t i) {
    const auto at = static_cast<int64_t>(i);
    return at / image * groups + at / inner % channels / (channels / groups);
  };
  for (size_t i = 0; i < x.size(); ++i) members[group_of(i)].push_back(x[i]);
  std::vector<Statistics> stats;
  std::vector<double> means, deviations;
  for (const std::vector<double>& group : members) {
    stats.push_back(statistics(group.data(), std::ssize(group), args.attrs.f("epsilon")));
    means.push_back(stats.back().mean);
    deviations.push_back(stats.back().inv_std);
  }
  for (size_t i = 0; i < x.size(); ++i) {
    const Statistics& own = stats[group_of(i)];
    const size_t c = static_cast<int64_t>(i) / inner % channels;
    x[i] = (x[i] - own.mean) * own.inv_std * gamma[c] + beta[c];
  }
  write_dense(args.out[0], x);
  if (args.out.size() > 1) write_dense(args.out[1], means);
  if (args.out.size() > 2) write_dense(args.out[2], deviations);
}

}  // namespace

REFERENCE(batch_norm) {
  const View& x = args.in[0];
  const int64_t axis = normalize_axis(args.attrs.i("axis"), x.rank(), "batch_norm");
  const double epsilon = args.attrs.f("epsilon");
  std::vector<double> y = read_dense<double>(x);
  const std::vector<double> mean = read_dense<double>(args.in[1]),
                            variance = read_dense<double>(args.in[2]);
  const std::vector<double> one(mean.size(), 1), zero(mean.size(), 0);
  const std::vector<double> gamma = args.has(3) ? read_dense<double>(args.in[3]) : one;
  const std::vector<double> beta = args.has(4) ? read_dense<double>(args.in[4]) : zero;
  size_t next = 0;
  for_each_index(x.shape(), [&](const Shape& at) {
    const size_t c = at[axis];
    y[next] = (y[next] - mean[c]) / std::sqrt(variance[c] + epsilon) * gamma[c] + beta[c];
    ++next;
  });
  write_dense(args.out[0], y);
}

REFERENCE(layer_norm) {
  NormRows rows(args);
  const std::vector<double> gamma = parameter(args, 1, 1), beta = parameter(args, 2, 0);
  std::vector<double> means, deviations;
  for (int64_t r = 0; r < rows.count; ++r) {
    const Statistics stats = statistics(rows.row(r), rows.length, args.attrs.f("epsilon"));
    for (int64_t i = r * rows.length; i < (r + 1) * rows.length; ++i)
      rows.x[i] = (rows.x[i] - stats.mean) * stats.inv_std * gamma[i] + beta[i];
    means.push_back(stats.mean);
    deviations.push_back(stats.inv_std);
  }
  write_dense(args.out[0], rows.x);
  if (args.out.size() > 1) write_dense(args.out[1], means);
  if (args.out.size() > 2) write_dense(args.out[2], deviations);
}

REFERENCE(rms_norm) {
  NormRows rows(args);
  const std::vector<double> gamma = parameter(args, 1, 1);
  std::vector<double> inverse;
  for (int64_t r = 0; r < rows.count; ++r) {
    double squares = 0;
    for (int64_t i = 0; i < rows.length; ++i) squares += rows.row(r)[i] * rows.row(r)[i];
    const double root =
        std::sqrt(squares / static_cast<double>(rows.length) + args.attrs.f("epsilon"));
    for (int64_t i = r * rows.length; i < (r + 1) * rows.length; ++i)
      rows.x[i] = rows.x[i] / root * gamma[i];
    inverse.push_back(1 / root);
  }
  write_dense(args.out[0], rows.x);
  if (args.out.size() > 1) write_dense(args.out[1], inverse);
}

REFERENCE(group_norm) { normalize_channels(args, args.attrs.i("groups")); }

REFERENCE(instance_norm) { normalize_channels(args, args.in[0].extent(channel_axis(args))); }

REFERENCE(lrn) {
  const Shape& shape = args.in[0].shape();
  const int64_t axis = normalize_axis(args.attrs.i("axis"), std::ssize(shape), "lrn");
  const int64_t channels = shape[axis],
                plane = element_count(Shape(shape.begin() + axis + 1, shape.end()));
  const int64_t size = args.attrs.i("size"), before = (size - 1) / 2, after = size - 1 - before;
  const double alpha = args.attrs.f("alpha"), beta = args.attrs.f("beta"),
               bias = args.attrs.f("bias");
  const std::vector<double> x = read_dense<double>(args.in[0]);
  std::vector<double> y(x.size());
  for (int64_t i = 0; i < std::ssize(x); ++i) {
    const int64_t c = i / plane % channels;
    double squares = 0;
    for (int64_t k = std::max<int64_t>(0, c - before); k <= std::min(channels - 1, c + after);
         ++k) {
      const double value = x[i + (k - c) * plane];
      squares += value * value;
    }
    y[i] = x[i] / std::pow(bias + alpha / static_cast<double>(size) * squares, beta);
  }
  write_dense(args.out[0], y);
}

}  // namespace anymps
