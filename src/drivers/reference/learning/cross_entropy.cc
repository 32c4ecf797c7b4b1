// SPDX-License-Identifier: Apache-2.0
// Losses against labels that are numbers of classes, and their gradients.
#include <cmath>

#include "drivers/reference/dense.h"
#include "semantics/softmax.h"

namespace anymps {

namespace {

// Labels over dense [outer, classes, inner].
struct Labels {
  Labels(const ReferenceArgs& args, size_t x_input) {
    const View &x = args.in[x_input], &targets = args.in[x_input + 1];
    const Shape& shape = x.shape();
    const size_t axis = shape.size() == 1 ? 0 : 1;
    classes = shape[axis];
    for (size_t i = axis + 1; i < shape.size(); ++i) inner *= shape[i];
    const int64_t ignored = args.attrs.i("ignore_index");
    for_each_index(targets.shape(), [&](const Shape& at) {
      const int64_t label = load_int(targets, targets.offset(at));
      require(label == ignored || (label >= 0 && label < classes),
              "[{}] label {} is out of range for {} classes", args.op.name, label, classes);
      of.push_back(label == ignored ? -1 : label);
    });
    weight = args.has(x_input + 2) ? read_dense<double>(args.in[x_input + 2])
                                   : std::vector<double>(classes, 1.0);
  }
  // Where class c of label i is in x.
  size_t place(size_t i, int64_t c) const {
    const auto at = static_cast<int64_t>(i);
    return (at / inner * classes + c) * inner + at % inner;
  }
  int64_t classes = 0, inner = 1;
  std::vector<int64_t> of;  // -1: does not count
  std::vector<double> weight;
};

// loss(i) is that of label i, which counts.
template <typename Fn>
void sum_losses(const ReferenceArgs& args, const Labels& labels, Fn loss) {
  std::vector<double> losses;
  double total = 0, sum = 0;
  for (size_t i = 0; i < labels.of.size(); ++i) {
    losses.push_back(labels.of[i] < 0 ? 0 : loss(i));
    if (labels.of[i] >= 0) total += labels.weight[labels.of[i]];
    sum += losses.back();
  }
  const std::string& reduction = args.attrs.s("reduction");
  if (reduction != "none") losses = {reduction == "mean" ? sum / total : sum};
  write_dense(args.out[0], losses);
  if (args.out.size() > 1) write_dense(args.out[1], std::vector<double>{total});
}

// What the gradient of each loss is multiplied with.
std::vector<double> loss_scales(const ReferenceArgs& args, const Labels& labels) {
  std::vector<double> scales = read_dense<double>(args.in[0]);
  if (args.attrs.s("reduction") != "none") scales.assign(labels.of.size(), scales[0]);
  if (args.attrs.s("reduction") == "mean")
    for (double& scale : scales) scale /= load_double(args.in[4], 0);
  return scales;
}

// The label as a distribution, with its weights.
std::vector<double> distribution(const Labels& labels, size_t i, double smoothing) {
  std::vector<double> q;
  for (int64_t c = 0; c < labels.classes; ++c) {
    const double share =
        (c == labels.of[i] ? 1 - smoothing : 0) + smoothing / static_cast<double>(labels.classes);
    q.push_back(share == 0 ? 0 : labels.weight[c] * share);
  }
  return q;
}

std::vector<double> scores_of(const Labels& labels, const std::vector<double>& x, size_t i) {
  std::vector<double> line;
  for (int64_t c = 0; c < labels.classes; ++c) line.push_back(x[labels.place(i, c)]);
  return line;
}

}  // namespace

REFERENCE(nll_loss) {
  const Labels labels(args, 0);
  const std::vector<double> x = read_dense<double>(args.in[0]);
  sum_losses(args, labels, [&](size_t i) {
    return -labels.weight[labels.of[i]] * x[labels.place(i, labels.of[i])];
  });
}

REFERENCE(nll_loss_gradient) {
  const Labels labels(args, 1);
  const std::vector<double> scales = loss_scales(args, labels);
  std::vector<double> dx(args.in[1].count(), 0.0);
  for (size_t i = 0; i < labels.of.size(); ++i)
    if (labels.of[i] >= 0)
      dx[labels.place(i, labels.of[i])] = -labels.weight[labels.of[i]] * scales[i];
  write_dense(args.out[0], dx);
}

REFERENCE(cross_entropy) {
  const Labels labels(args, 0);
  const std::vector<double> x = read_dense<double>(args.in[0]);
  sum_losses(args, labels, [&](size_t i) {
    const std::vector<double> q = distribution(labels, i, args.attrs.f("label_smoothing")),
                              line = scores_of(labels, x, i);
    std::vector<double> exponentials = line;
    const double log_sum = softmax_line(exponentials).log_sum();
    double loss = 0;
    for (size_t c = 0; c < line.size(); ++c)
      if (q[c] != 0) loss += q[c] * (log_sum - line[c]);
    return loss;
  });
}

REFERENCE(cross_entropy_gradient) {
  const Labels labels(args, 1);
  const std::vector<double> x = read_dense<double>(args.in[1]), scales = loss_scales(args, labels);
  std::vector<double> dx(x.size(), 0.0);
  for (size_t i = 0; i < labels.of.size(); ++i) {
    if (labels.of[i] < 0) continue;
    const std::vector<double> q = distribution(labels, i, args.attrs.f("label_smoothing"));
    std::vector<double> p = scores_of(labels, x, i);
    const SoftmaxLine line = softmax_line(p);
    double sum = 0;
    for (const double share : q) sum += share;
    for (size_t c = 0; c < p.size(); ++c)
      dx[labels.place(i, static_cast<int64_t>(c))] = scales[i] * (p[c] / line.sum * sum - q[c]);
  }
  write_dense(args.out[0], dx);
}

}  // namespace anymps
