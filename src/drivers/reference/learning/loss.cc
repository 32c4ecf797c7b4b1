// SPDX-License-Identifier: Apache-2.0
// Reference kernels of losses.
#include "drivers/reference/dense.h"
#include "drivers/reference/lines.h"
#include "semantics/softmax.h"

namespace anymps {

namespace {

void reduce_to(const View& loss, const std::string& reduction, std::vector<double> losses,
               double weights) {
  if (reduction == "none") return write_dense(loss, losses);
  double sum = 0;
  for (const double value : losses) sum += value;
  write_dense(loss, std::vector<double>{reduction == "mean" ? sum / weights : sum});
}

}  // namespace

REFERENCE(softmax_cross_entropy) {
  const View &x = args.in[0], &labels = args.in[1];
  const int64_t axis = normalize_axis(args.attrs.i("axis"), x.rank(), "softmax_cross_entropy");
  std::vector<double> losses;
  Shape places = x.shape();
  places[axis] = 1;
  dispatch<kFloat>(x.dtype, [&]<typename T>() {
    for_each_index(places, [&](const Shape& index) {
      const std::vector<double> line = read_line<T>(x, index, axis);
      const std::vector<double> expected = read_line<T>(labels, index, axis);
      std::vector<double> parts = line;
      const double log_sum = line.empty() ? 0 : softmax_line(parts).log_sum();
      double loss = 0;
      for (size_t i = 0; i < line.size(); ++i) loss -= expected[i] * (line[i] - log_sum);
      losses.push_back(loss);
    });
  });
  const auto count = static_cast<double>(losses.size());
  reduce_to(args.out[0], args.attrs.s("reduction"), std::move(losses), count);
}

REFERENCE(softmax_cross_entropy_gradient) {
  const View &dloss = args.in[0], &x = args.in[1], &labels = args.in[2], &dx = args.out[0];
  const int64_t axis =
      normalize_axis(args.attrs.i("axis"), x.rank(), "softmax_cross_entropy_gradient");
  const std::string& reduction = args.attrs.s("reduction");
  Shape places = x.shape();
  places[axis] = 1;
  const auto count = static_cast<double>(element_count(places));
  dispatch<kFloat>(x.dtype, [&]<typename T>() {
    for_each_line(x.shape(), axis, [&](const Shape& index) {
      std::vector<double> line = read_line<T>(x, index, axis);
      const std::vector<double> expected = read_line<T>(labels, index, axis);
      const SoftmaxLine softmax = softmax_line(line);
      double sum = 0;
      for (const double label : expected) sum += label;
      double scale = widen(dloss.as<T>()[reduction == "none" ? dloss.offset(index) : 0]);
      if (reduction == "mean") scale /= count;
      for (int64_t i = 0; i < x.extent(axis); ++i) {
        const size_t at = i;
        dx.as<T>()[dx.offset(index) + i * dx.stride(axis)] =
            narrow<T>(scale * (line[at] / softmax.sum * sum - expected[at]));
      }
    });
  });
}

}  // namespace anymps
