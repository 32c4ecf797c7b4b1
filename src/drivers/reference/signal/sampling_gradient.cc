// SPDX-License-Identifier: Apache-2.0
// Gradients of sampling by their definition: each output element gives its gradient to the elements
// that it mixes, and the slopes of their weights to its place.
#include "drivers/reference/dense.h"
#include "drivers/reference/signal/rois.h"
#include "ops/signal/sampling.h"

namespace anymps {

REFERENCE(grid_sample_gradient) {
  const View &gradient = args.in[0], &x = args.in[1], &grid = args.in[2];
  const GridSampling sampling(args.attrs, x.shape(), gradient.shape());
  const TensorAxes& axes = sampling.axes;
  const std::vector<double> elements = read_dense<double>(x), places = read_dense<double>(grid),
                            dy = read_dense<double>(gradient);
  std::vector<double> dx(elements.size()), dgrid(places.size());
  const Strides steps = contiguous_strides(x.shape()), rows = contiguous_strides(grid.shape());
  std::vector<GridAxis::SlopedTaps> taps(axes.count);
  Shape corners(axes.count);
  size_t next = 0;
  for_each_index(gradient.shape(), [&](const Shape& at) {
    const double g = dy[next++];
    int64_t place = at[0] * rows[0];
    for (size_t i = 0; i < axes.count; ++i) place += at[axes.spatial + i] * rows[1 + i];
    const auto coordinate = [&](size_t i) {  // the innermost axis comes first
      return static_cast<size_t>(place) + axes.count - 1 - i;
    };
    for (size_t i = 0; i < axes.count; ++i) {
      taps[i] = sampling.spatial[i].sloped_taps(places[coordinate(i)], at[axes.spatial + i]);
      corners[i] = static_cast<int64_t>(taps[i].count);
    }
    for_each_index(corners, [&](const Shape& corner) {
      const auto tap = [&](size_t i) -> const GridAxis::SlopedTap& {
        return taps[i].tap[corner[i]];
      };
      // The weights' product, all but one of them taken if `out` is an axis.
      const auto product = [&](size_t out) {
        double weight = 1;
        for (size_t i = 0; i < axes.count; ++i)
          if (i != out) weight *= tap(i).weight;
        return weight;
      };
      bool inside = true;
      int64_t from = at[0] * steps[0] + at[axes.channel] * steps[axes.channel];
      for (size_t i = 0; i < axes.count; ++i) {
        inside = inside && tap(i).index >= 0;
        from += tap(i).index * steps[axes.spatial + i];
      }
      const double value = inside ? elements[from] : sampling.constant;
      if (inside) dx[from] += g * product(axes.count);
      for (size_t i = 0; i < axes.count; ++i)
        dgrid[coordinate(i)] += g * value * tap(i).slope * product(i);
    });
  });
  write_dense(args.out[0], dx);
  if (args.out.size() > 1) write_dense(args.out[1], dgrid);
}

REFERENCE(roi_align_gradient) {
  using Corner = AlignedRegion::Corner;
  using Sample = AlignedRegion::Sample;
  const View &gradient = args.in[0], &x = args.in[1], &rois = args.in[2];
  const bool average = args.attrs.s("mode") == "avg";
  const AlignedRegion::Rule rule = aligned_regions(args.attrs, x.shape(), gradient.shape());
  const double scale = args.attrs.f("spatial_scale");
  const std::vector<double> elements = read_dense<double>(x), dy = read_dense<double>(gradient);
  std::vector<double> dx(elements.size()), drois(rois.count());
  size_t next = 0;
  for_each_index(gradient.shape(), [&](const Shape& at) {
    const double g = dy[next++];
    const size_t r = at[0];
    const int64_t n = region_image(
        "roi_align_gradient",
        static_cast<double>(load_int(args.in[3], at[0] * args.in[3].stride(0))), x.extent(0));
    const AlignedRegion region(rule, numbers_of<4>(rois, at[0]), at[0]);
    const auto place = [&](const Corner& corner) {
      return ((n * x.extent(1) + at[1]) * x.extent(2) + corner.row) * x.extent(3) + corner.column;
    };
    const auto give = [&](const Sample& sample, const Corner& corner, double share) {
      const double value = elements[place(corner)] * share * scale;
      dx[place(corner)] += share * corner.weight;
      const double row_share = region.row_share(at[2], sample),
                   column_share = region.column_share(at[3], sample);
      drois[r * 4] += value * corner.column_slope * (1 - column_share);
      drois[r * 4 + 1] += value * corner.row_slope * (1 - row_share);
      drois[r * 4 + 2] += value * corner.column_slope * column_share;
      drois[r * 4 + 3] += value * corner.row_slope * row_share;
    };
    if (average) {
      region.for_each_sample(at[2], at[3], [&](const Sample& sample) {
        for (size_t k = 0; sample.inside && k < 4; ++k)
          give(sample, sample.corners[k], g / region.samples());
      });
      return;
    }
    double largest = 0;
    bool first = true, found = false;  // found: the largest is a corner, not a sample outside
    Sample winner;
    size_t which = 0;
    region.for_each_sample(at[2], at[3], [&](const Sample& sample) {
      for (size_t k = 0; k < (sample.inside ? 4 : 1); ++k) {
        const double part =
            sample.inside ? sample.corners[k].weight * elements[place(sample.corners[k])] : 0;
        if (first || part > largest) largest = part, winner = sample, which = k;
        found = winner.inside;
        first = false;
      }
    });
    if (found) give(winner, winner.corners[which], g);
  });
  write_dense(args.out[0], dx);
  if (args.out.size() > 1) write_dense(args.out[1], drois);
}

REFERENCE(max_roi_pool_gradient) {
  const View &gradient = args.in[0], &x = args.in[1], &rois = args.in[2];
  const PooledRegion::Rule rule = pooled_regions(args.attrs, x.shape(), gradient.shape());
  const std::vector<double> elements = read_dense<double>(x), dy = read_dense<double>(gradient);
  std::vector<double> dx(elements.size());
  size_t next = 0;
  for_each_index(gradient.shape(), [&](const Shape& at) {
    const double g = dy[next++];
    const PooledRegion region(rule, numbers_of<5>(rois, at[0]), at[0]);
    int64_t best = -1;
    region.for_each_element(at[2], at[3], [&](int64_t i, int64_t j) {
      const int64_t place =
          ((region.image() * x.extent(1) + at[1]) * x.extent(2) + i) * x.extent(3) + j;
      if (best < 0 || elements[place] > elements[best]) best = place;
    });
    if (best >= 0) dx[best] += g;
  });
  write_dense(args.out[0], dx);
}

}  // namespace anymps
