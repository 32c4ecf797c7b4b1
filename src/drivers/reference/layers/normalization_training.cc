// SPDX-License-Identifier: Apache-2.0
// Normalizations that train and their gradients, by their definitions, in double.
#include <cmath>

#include "drivers/reference/dense.h"
#include "ops/layers/window.h"

namespace anymps {

namespace {

std::vector<double> read_or(const ReferenceArgs& args, size_t i, size_t count, double absent) {
  return args.has(i) ? read_dense<double>(args.in[i]) : std::vector<double>(count, absent);
}

// [N, C, rest] of an input with channels first or last: the channel of each element of a dense
// copy.
struct Channels {
  Channels(const Attrs& attrs, const Shape& shape) {
    const size_t axis = tensor_axes(attrs, shape.size()).channel;
    count = shape[axis];
    for (size_t i = axis + 1; i < shape.size(); ++i) inner *= static_cast<size_t>(shape[i]);
  }
  size_t of(size_t element) const { return element / inner % count; }
  size_t count = 0, inner = 1;
};

// What a gradient sees of the runs of elements that share statistics.
struct RunStatistics {
  double mean = 0, inv_std = 0;
};

RunStatistics run_statistics(const double* x, size_t count, double epsilon, bool centered) {
  double sum = 0, squares = 0;
  for (size_t i = 0; i < count && centered; ++i) sum += x[i];
  const double mean = centered ? sum / static_cast<double>(count) : 0;
  for (size_t i = 0; i < count; ++i) squares += (x[i] - mean) * (x[i] - mean);
  return {mean, 1 / std::sqrt(squares / static_cast<double>(count) + epsilon)};
}

// The gradients of a normalization of runs of consecutive elements. parameter(i) is the place of
// element i's scale and shift; `mean` and `inv_std` are the numbers of these inputs.
template <typename Parameter>
void run_gradients(const ReferenceArgs& args, size_t runs, std::optional<size_t> mean,
                   size_t inv_std, size_t parameters, Parameter parameter) {
  const std::vector<double> dy = read_dense<double>(args.in[0]), x = read_dense<double>(args.in[1]);
  const std::vector<double> gamma = read_or(args, inv_std + 1, parameters, 1);
  const std::vector<double> means = mean ? read_or(args, *mean, runs, 0)
                                         : std::vector<double>(runs, 0.0),
                            deviations = read_or(args, inv_std, runs, 0);
  std::vector<double> dx(x.size()), dgamma(parameters, 0.0), dbeta(parameters, 0.0);
  const size_t length = runs == 0 ? 0 : x.size() / runs;
  for (size_t r = 0; r < runs; ++r) {
    const size_t first = r * length;
    RunStatistics s{means[r], deviations[r]};
    if (!args.has(inv_std))
      s = run_statistics(x.data() + first, length, args.attrs.f("epsilon"), mean.has_value());
    double sum = 0, moment = 0;
    for (size_t i = first; i < first + length; ++i) {
      const size_t p = parameter(i);
      sum += dy[i] * gamma[p];
      moment += dy[i] * gamma[p] * (x[i] - s.mean);
      dgamma[p] += dy[i] * ((x[i] - s.mean) * s.inv_std);
      dbeta[p] += dy[i];
    }
    const double count = static_cast<double>(length);
    const double b = -s.inv_std * s.inv_std * s.inv_std * moment / count;
    const double c = mean ? -s.inv_std * sum / count : 0;
    for (size_t i = first; i < first + length; ++i)
      dx[i] = dy[i] * gamma[parameter(i)] * s.inv_std + ((x[i] - s.mean) * b + c);
  }
  write_dense(args.out[0], dx);
  if (args.out.size() > 1) write_dense(args.out[1], dgamma);
  if (args.out.size() > 2) write_dense(args.out[2], dbeta);
}

void row_norm_gradients(const ReferenceArgs& args, bool centered) {
  const Shape& shape = args.in[1].shape();
  const int64_t axis =
      normalize_axis(args.attrs.i("axis"), args.in[1].rank(), args.op.name.c_str());
  size_t rows = 1, length = 1;
  for (size_t i = 0; i < shape.size(); ++i)
    (static_cast<int64_t>(i) < axis ? rows : length) *= static_cast<size_t>(shape[i]);
  run_gradients(args, rows, centered ? std::optional<size_t>(2) : std::nullopt, centered ? 3 : 2,
                length, [&](size_t i) { return i % length; });
}

}  // namespace

REFERENCE(batch_norm_training) {
  const Channels channels(args.attrs, args.in[0].shape());
  const std::vector<double> x = read_dense<double>(args.in[0]);
  const std::vector<double> gamma = read_or(args, 1, channels.count, 1),
                            beta = read_or(args, 2, channels.count, 0);
  std::vector<double> mean(channels.count, 0.0), squares(mean), inv_std(mean), y(x.size());
  const double count =
      channels.count == 0 ? 0 : static_cast<double>(x.size()) / static_cast<double>(channels.count);
  for (size_t i = 0; i < x.size(); ++i) mean[channels.of(i)] += x[i];
  if (count > 0)
    for (double& value : mean) value /= count;
  for (size_t i = 0; i < x.size(); ++i) {
    const double distance = x[i] - mean[channels.of(i)];
    squares[channels.of(i)] += distance * distance;
  }
  for (size_t c = 0; c < channels.count; ++c)
    inv_std[c] = 1 / std::sqrt((count > 0 ? squares[c] / count : 0) + args.attrs.f("epsilon"));
  for (size_t i = 0; i < x.size(); ++i) {
    const size_t c = channels.of(i);
    y[i] = (x[i] - mean[c]) * inv_std[c] * gamma[c] + beta[c];
  }
  write_dense(args.out[0], y);
  write_dense(args.out[1], mean);
  write_dense(args.out[2], inv_std);
  const double momentum = count > 0 ? args.attrs.f("momentum") : 0;
  for (size_t k = 3; k < args.out.size(); ++k) {
    std::vector<double> running = read_or(args, k, channels.count, 0);
    const double kept = args.has(k) ? 1 - momentum : 0, moved = args.has(k) ? momentum : 1;
    for (size_t c = 0; c < channels.count; ++c) {
      double statistic = mean[c];
      if (k == 4)
        statistic = count > 0 ? squares[c] / (args.attrs.b("unbiased") ? count - 1 : count) : 0;
      running[c] = moved == 0 ? running[c] : running[c] * kept + statistic * moved;
    }
    write_dense(args.out[k], running);
  }
}

REFERENCE(batch_norm_training_gradient) {
  const Channels channels(args.attrs, args.in[1].shape());
  const std::vector<double> dy = read_dense<double>(args.in[0]), x = read_dense<double>(args.in[1]),
                            mean = read_dense<double>(args.in[2]),
                            inv_std = read_dense<double>(args.in[3]),
                            gamma = read_or(args, 4, channels.count, 1);
  std::vector<double> dx(x.size()), moment(channels.count, 0.0), dbeta(moment), dgamma(moment);
  for (size_t i = 0; i < x.size(); ++i) {
    const size_t c = channels.of(i);
    dbeta[c] += dy[i];
    moment[c] += dy[i] * (x[i] - mean[c]);
  }
  const double count = static_cast<double>(x.size()) / static_cast<double>(channels.count);
  for (size_t i = 0; i < x.size(); ++i) {
    const size_t c = channels.of(i);
    const double a = gamma[c] * inv_std[c];
    dx[i] = dy[i] * a;
    if (args.attrs.b("training"))
      dx[i] += (x[i] - mean[c]) * (-a * inv_std[c] * inv_std[c] * moment[c] / count) -
               a * dbeta[c] / count;
  }
  for (size_t c = 0; c < channels.count; ++c) dgamma[c] = moment[c] * inv_std[c];
  write_dense(args.out[0], dx);
  if (args.out.size() > 1) write_dense(args.out[1], dgamma);
  if (args.out.size() > 2) write_dense(args.out[2], dbeta);
}

REFERENCE(layer_norm_gradient) { row_norm_gradients(args, true); }
REFERENCE(rms_norm_gradient) { row_norm_gradients(args, false); }

REFERENCE(group_norm_gradient) {
  const Shape& shape = args.in[1].shape();
  const size_t channels = shape[1];
  size_t plane = 1;
  for (size_t i = 2; i < shape.size(); ++i) plane *= static_cast<size_t>(shape[i]);
  run_gradients(args, shape[0] * args.attrs.i("groups"), 2, 3, channels,
                [&](size_t i) { return i / plane % channels; });
}

}  // namespace anymps
