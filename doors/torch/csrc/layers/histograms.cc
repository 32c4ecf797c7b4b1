// SPDX-License-Identifier: Apache-2.0
// Histograms over several axes: one list of edges for each, and the bins as places in a tensor.
#include <ATen/TensorOperators.h>
#include <ATen/ops/bucketize.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <torch/library.h>

namespace anymps::aten {

namespace {

using at::Tensor;

Tensor as_points(const Tensor& self) {
  TORCH_CHECK(self.dim() >= 2,
              "torch.histogramdd: input tensor should have at least 2 dimensions, "
              "but got ",
              self.dim());
  return self.reshape({-1, self.size(-1)});
}

std::vector<Tensor> bin_edges(const Tensor& self, at::IntArrayRef bins,
                              std::optional<at::ArrayRef<double>> range,
                              const std::optional<Tensor>& /*weight*/, bool /*density*/) {
  const Tensor points = as_points(self);
  const int64_t axes = points.size(1);
  TORCH_CHECK(std::ssize(bins) == axes, "torch.histogramdd: the size of bins should be ", axes,
              ", but got ", bins.size());
  TORCH_CHECK(!range || std::ssize(*range) == 2 * axes, "torch.histogramdd: for a ", axes,
              "-dimensional histogram range should have ", 2 * axes, " elements");
  std::vector<Tensor> edges;
  for (int64_t axis = 0; axis < axes; ++axis) {
    double low = 0, high = 1;
    if (range) {
      low = (*range)[2 * axis];
      high = (*range)[2 * axis + 1];
    } else if (points.numel() > 0) {
      low = points.select(1, axis).min().item<double>();
      high = points.select(1, axis).max().item<double>();
    }
    TORCH_CHECK(std::isfinite(low) && std::isfinite(high), "torch.histogramdd: dimension ", axis,
                "'s range [", low, ", ", high, "] is not finite");
    TORCH_CHECK(low <= high, "torch.histogramdd: min should not exceed max, but got min ", low,
                " max ", high, " for dimension ", axis);
    if (low == high) low -= 0.5, high += 0.5;
    edges.push_back(at::linspace(low, high, bins[axis] + 1, self.options()));
  }
  return edges;
}

Tensor histogram(const Tensor& self, at::TensorList edges, const std::optional<Tensor>& weight,
                 bool density) {
  const Tensor points = as_points(self);
  TORCH_CHECK(std::ssize(edges) == points.size(1),
              "torch.histogramdd: expected a list of edges for each of ", points.size(1),
              " dimensions, but got ", edges.size());
  const auto counts = self.options().dtype(at::kLong);
  Tensor place = at::zeros({points.size(0)}, counts);
  Tensor inside = at::ones({points.size(0)}, counts.dtype(at::kBool));
  std::vector<int64_t> shape;
  int64_t bins = 1;
  for (int64_t axis = 0; axis < points.size(1); ++axis) {
    const Tensor x = points.select(1, axis).contiguous();
    const Tensor& of_axis = edges[axis];
    const int64_t count = of_axis.numel() - 1;
    inside = inside.logical_and(x >= of_axis[0]).logical_and(x <= of_axis[-1]);
    // The last bin has both its edges.
    place = place * count + (at::bucketize(x, of_axis, false, true) - 1).clamp_max(count - 1);
    shape.push_back(count);
    bins *= count;
  }
  const Tensor weights = weight && weight->defined() ? weight->reshape({-1}).to(self.scalar_type())
                                                     : at::ones({points.size(0)}, self.options());
  Tensor sums = at::zeros({bins + 1}, self.options())
                    .index_add_(0, at::where(inside, place, bins), weights)
                    .narrow(0, 0, bins)
                    .reshape(shape);
  if (!density) return sums;
  sums = sums / sums.sum();
  for (int64_t axis = 0; axis < points.size(1); ++axis) {
    std::vector<int64_t> along(shape.size(), 1);
    along[axis] = shape[axis];
    sums = sums / edges[axis].diff().reshape(along);
  }
  return sums;
}

Tensor histogram_of_counts(const Tensor& self, at::IntArrayRef bins,
                           std::optional<at::ArrayRef<double>> range,
                           const std::optional<Tensor>& weight, bool density) {
  return histogram(self, bin_edges(self, bins, range, weight, density), weight, density);
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, MPS, m) {
  m.impl("_histogramdd_bin_edges", bin_edges);
  m.impl("_histogramdd_from_bin_cts", histogram_of_counts);
  m.impl("_histogramdd_from_bin_tensors", histogram);
}

}  // namespace anymps::aten
