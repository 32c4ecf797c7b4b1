// SPDX-License-Identifier: Apache-2.0
// Sampling by its definition: each output element mixes the neighbours of its place.
#include <algorithm>
#include <cmath>

#include "drivers/reference/dense.h"
#include "drivers/reference/move.h"
#include "drivers/reference/signal/rois.h"
#include "ops/signal/sampling.h"

namespace anymps {

REFERENCE(grid_sample) {
  const View &x = args.in[0], &grid = args.in[1], &y = args.out[0];
  const GridSampling sampling(args.attrs, x.shape(), y.shape());
  const TensorAxes& axes = sampling.axes;
  dispatch<kFloat>(x.dtype, [&]<typename T>() {
    std::vector<GridAxis::Taps> taps(axes.count);
    Shape place(grid.shape().size()), corners(axes.count);
    for_each_index(y.shape(), [&](const Shape& at) {
      place[0] = at[0];
      for (size_t i = 0; i < axes.count; ++i) place[1 + i] = at[axes.spatial + i];
      for (size_t i = 0; i < axes.count; ++i) {
        place.back() = static_cast<int64_t>(axes.count - 1 - i);
        taps[i] = sampling.spatial[i].taps(load_double(grid, grid.offset(place)), place[1 + i]);
        corners[i] = static_cast<int64_t>(taps[i].count);
      }
      double sum = 0;
      Shape from = at;
      for_each_index(corners, [&](const Shape& corner) {
        double weight = 1;
        bool inside = true;
        for (size_t i = 0; i < axes.count; ++i) {
          const GridAxis::Tap& tap = taps[i].tap[corner[i]];
          weight *= tap.weight;
          inside = inside && tap.index >= 0;
          from[axes.spatial + i] = tap.index;
        }
        sum +=
            weight * (inside ? double{static_cast<Compute<T>>(x.at<T>(from))} : sampling.constant);
      });
      y.at<T>(at) = static_cast<T>(static_cast<Compute<T>>(sum));
    });
  });
}

REFERENCE(affine_grid) {
  const View &theta = args.in[0], &y = args.out[0];
  const bool align = args.attrs.b("align_corners");
  const size_t count = y.shape().size() - 2;
  dispatch<kFloat>(y.dtype, [&]<typename T>() {
    for_each_index(y.shape(), [&](const Shape& at) {
      double sum = 0;
      const auto factor = [&](size_t column) {
        return double{
            static_cast<Compute<T>>(theta.at<T>({at[0], at.back(), static_cast<int64_t>(column)}))};
      };
      for (size_t i = 0; i < count; ++i) {
        sum += factor(count - 1 - i) * normalized_place(at[1 + i], y.shape()[1 + i], align);
      }
      sum += factor(count);
      y.at<T>(at) = static_cast<T>(static_cast<Compute<T>>(sum));
    });
  });
}

REFERENCE(roi_align) {
  const View &x = args.in[0], &rois = args.in[1], &y = args.out[0];
  const bool average = args.attrs.s("mode") == "avg";
  const AlignedRegion::Rule rule = aligned_regions(args.attrs, x.shape(), y.shape());
  dispatch<kFloat>(x.dtype, [&]<typename T>() {
    for_each_index(y.shape(), [&](const Shape& at) {
      const int64_t r = at[0];
      const int64_t n = region_image(
          "roi_align", static_cast<double>(load_int(args.in[2], r * args.in[2].stride(0))),
          x.extent(0));
      const AlignedRegion region(rule, numbers_of<4>(rois, r), r);
      double sum = 0, largest = 0;
      bool first = true;
      region.for_each_sample(at[2], at[3], [&](const AlignedRegion::Sample& sample) {
        double value = 0, best = 0;
        for (size_t k = 0; sample.inside && k < 4; ++k) {
          const AlignedRegion::Corner& corner = sample.corners[k];
          const double part =
              corner.weight *
              double{static_cast<Compute<T>>(x.at<T>({n, at[1], corner.row, corner.column}))};
          value += part;
          best = k == 0 ? part : std::max(best, part);
        }
        sum += value;
        largest = first ? best : std::max(largest, best);
        first = false;
      });
      y.at<T>(at) =
          static_cast<T>(static_cast<Compute<T>>(average ? sum / region.samples() : largest));
    });
  });
}

REFERENCE(max_roi_pool) {
  const View &x = args.in[0], &rois = args.in[1], &y = args.out[0];
  const PooledRegion::Rule rule = pooled_regions(args.attrs, x.shape(), y.shape());
  dispatch<kFloat>(x.dtype, [&]<typename T>() {
    using C = Compute<T>;
    for_each_index(y.shape(), [&](const Shape& at) {
      const PooledRegion region(rule, numbers_of<5>(rois, at[0]), at[0]);
      C best = 0;
      bool first = true;
      region.for_each_element(at[2], at[3], [&](int64_t i, int64_t j) {
        const C value = static_cast<C>(x.at<T>({region.image(), at[1], i, j}));
        best = first ? value : std::max(best, value);
        first = false;
      });
      y.at<T>(at) = static_cast<T>(best);
    });
  });
}

REFERENCE(center_crop_pad) {
  const View &x = args.in[0], &y = args.out[0];
  std::fill_n(y.data, static_cast<size_t>(y.count()) * size_of(y.dtype), 0);
  Shape shift(x.shape().size());  // of x's elements in y
  for (size_t i = 0; i < shift.size(); ++i) {
    const int64_t d = y.shape()[i] - x.shape()[i];
    shift[i] = d >= 0 ? d / 2 : -(-d / 2);
  }
  for_each_index(y.shape(), [&](const Shape& at) {
    Shape from = at;
    for (size_t i = 0; i < from.size(); ++i) {
      from[i] -= shift[i];
      if (from[i] < 0 || from[i] >= x.shape()[i]) return;
    }
    move_element(y, y.offset(at), x, x.offset(from));
  });
}

}  // namespace anymps
