// SPDX-License-Identifier: Apache-2.0
// Sampling by its definition: each output element mixes the neighbours of its place.
#include <algorithm>
#include <cmath>
#include <limits>

#include "drivers/reference/dense.h"
#include "drivers/reference/move.h"
#include "ops/grid_coordinates.h"
#include "ops/window.h"

namespace anymps {

REFERENCE(grid_sample) {
  const View &x = args.in[0], &grid = args.in[1], &y = args.out[0];
  const TensorAxes axes = tensor_axes(args.attrs, x.shape().size());
  std::vector<GridAxis> spatial;
  for (size_t i = 0; i < axes.count; ++i)
    spatial.push_back(
        GridAxis::of(args.attrs, x.shape()[axes.spatial + i], y.shape()[axes.spatial + i]));
  const double constant = args.attrs.f("constant_value");
  dispatch<kFloat>(x.dtype, [&]<typename T>() {
    std::vector<GridAxis::Taps> taps(axes.count);
    Shape place(grid.shape().size()), corners(axes.count);
    for_each_index(y.shape(), [&](const Shape& at) {
      place[0] = at[0];
      for (size_t i = 0; i < axes.count; ++i) place[1 + i] = at[axes.spatial + i];
      for (size_t i = 0; i < axes.count; ++i) {
        place.back() = static_cast<int64_t>(axes.count - 1 - i);
        taps[i] = spatial[i].taps(load_double(grid, grid.offset(place)), place[1 + i]);
        corners[i] = static_cast<int64_t>(taps[i].count);
      }
      double sum = 0;
      Shape from = at;
      for_each_index(corners, [&](const Shape& corner) {
        double weight = 1;
        bool inside = true;
        for (size_t i = 0; i < axes.count; ++i) {
          const GridAxis::Tap& tap = taps[i].tap[static_cast<size_t>(corner[i])];
          weight *= tap.weight;
          inside = inside && tap.index >= 0;
          from[axes.spatial + i] = tap.index;
        }
        sum += weight * (inside ? double{static_cast<Compute<T>>(x.at<T>(from))} : constant);
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
        const auto p = static_cast<double>(at[1 + i]), n = static_cast<double>(y.shape()[1 + i]);
        const double normal = !align ? (2 * p + 1) / n - 1 : n > 1 ? 2 * p / (n - 1) - 1 : -1;
        sum += factor(count - 1 - i) * normal;
      }
      sum += factor(count);
      y.at<T>(at) = static_cast<T>(static_cast<Compute<T>>(sum));
    });
  });
}

namespace {

int64_t batch_of(const char* op, double index, int64_t images) {
  require(index >= 0 && index < static_cast<double>(images),
          "[{}] a region is of image {}, there are {}", op, index, images);
  return static_cast<int64_t>(index);
}

}  // namespace

REFERENCE(roi_align) {
  const View &x = args.in[0], &rois = args.in[1], &y = args.out[0];
  const bool half_pixel = args.attrs.b("half_pixel"), average = args.attrs.s("mode") == "avg";
  const double scale = args.attrs.f("spatial_scale"), offset = half_pixel ? 0.5 : 0;
  const int64_t ratio = args.attrs.i("sampling_ratio");
  const int64_t height = x.extent(2), width = x.extent(3);
  dispatch<kFloat>(x.dtype, [&]<typename T>() {
    const auto coordinate = [&](int64_t r, int64_t k) {
      const double value = double{static_cast<Compute<T>>(rois.at<T>({r, k}))} * scale - offset;
      require(std::isfinite(value), "[roi_align] region {} has the coordinate {}", r, value);
      return value;
    };
    for_each_index(y.shape(), [&](const Shape& at) {
      const int64_t r = at[0];
      const int64_t n =
          batch_of("roi_align", static_cast<double>(load_int(args.in[2], r * args.in[2].stride(0))),
                   x.extent(0));
      const double x1 = coordinate(r, 0), y1 = coordinate(r, 1);
      double w = coordinate(r, 2) - x1, h = coordinate(r, 3) - y1;
      if (!half_pixel) w = std::max(w, 1.0), h = std::max(h, 1.0);
      const double cell_h = h / static_cast<double>(y.extent(2)),
                   cell_w = w / static_cast<double>(y.extent(3));
      const auto samples = [&](double cell) {
        require(ratio > 0 || cell < 1e6, "[roi_align] region {} is too large", r);
        return ratio > 0 ? ratio : static_cast<int64_t>(std::ceil(cell));
      };
      const int64_t rows = samples(cell_h), columns = samples(cell_w);
      double sum = 0, largest = 0;
      bool first = true;
      for (int64_t i = 0; i < rows; ++i) {
        for (int64_t j = 0; j < columns; ++j) {
          const auto place = [](double start, int64_t cell, double size, int64_t k, int64_t of) {
            return start + static_cast<double>(cell) * size +
                   (static_cast<double>(k) + 0.5) * size / static_cast<double>(of);
          };
          double py = place(y1, at[2], cell_h, i, rows), px = place(x1, at[3], cell_w, j, columns);
          double value = 0, best = 0;
          if (py >= -1 && py <= static_cast<double>(height) && px >= -1 &&
              px <= static_cast<double>(width)) {
            py = std::clamp(py, 0.0, static_cast<double>(height - 1));
            px = std::clamp(px, 0.0, static_cast<double>(width - 1));
            const auto top = static_cast<int64_t>(py), left = static_cast<int64_t>(px);
            const double ty = py - static_cast<double>(top), tx = px - static_cast<double>(left);
            bool fresh = true;
            for (int corner = 0; corner < 4; ++corner) {
              const bool down = corner & 2, right = corner & 1;
              const double weight = (down ? ty : 1 - ty) * (right ? tx : 1 - tx);
              const int64_t row = std::min(top + down, height - 1);
              const int64_t column = std::min(left + right, width - 1);
              const double part =
                  weight * double{static_cast<Compute<T>>(x.at<T>({n, at[1], row, column}))};
              value += part;
              best = fresh ? part : std::max(best, part);
              fresh = false;
            }
          }
          sum += value;
          largest = first ? best : std::max(largest, best);
          first = false;
        }
      }
      const double count = static_cast<double>(std::max<int64_t>(rows * columns, 1));
      y.at<T>(at) = static_cast<T>(static_cast<Compute<T>>(average ? sum / count : largest));
    });
  });
}

REFERENCE(max_roi_pool) {
  const View &x = args.in[0], &rois = args.in[1], &y = args.out[0];
  const double scale = args.attrs.f("spatial_scale");
  const int64_t height = x.extent(2), width = x.extent(3);
  dispatch<kFloat>(x.dtype, [&]<typename T>() {
    using C = Compute<T>;
    for_each_index(y.shape(), [&](const Shape& at) {
      const int64_t r = at[0];
      const auto number = [&](int64_t k) { return double{static_cast<C>(rois.at<T>({r, k}))}; };
      const int64_t n = batch_of("max_roi_pool", number(0), x.extent(0));
      const auto corner = [&](int64_t k) {
        const double place = std::round(number(k) * scale);
        require(std::abs(place) < 1e9, "[max_roi_pool] region {} has the coordinate {}", r, place);
        return static_cast<int64_t>(place);
      };
      // The elements of cell `cell` of `cells`, between two corners.
      const auto range = [](int64_t start, int64_t end, int64_t cell, int64_t cells,
                            int64_t limit) {
        const double size =
            static_cast<double>(std::max<int64_t>(end - start + 1, 1)) / static_cast<double>(cells);
        const auto low = static_cast<int64_t>(std::floor(static_cast<double>(cell) * size));
        const auto high = static_cast<int64_t>(std::ceil(static_cast<double>(cell + 1) * size));
        return std::pair(std::clamp<int64_t>(low + start, 0, limit),
                         std::clamp<int64_t>(high + start, 0, limit));
      };
      const auto [top, bottom] = range(corner(2), corner(4), at[2], y.extent(2), height);
      const auto [left, right] = range(corner(1), corner(3), at[3], y.extent(3), width);
      C best = 0;
      bool first = true;
      for (int64_t i = top; i < bottom; ++i)
        for (int64_t j = left; j < right; ++j) {
          const C value = static_cast<C>(x.at<T>({n, at[1], i, j}));
          best = first ? value : std::max(best, value);
          first = false;
        }
      y.at<T>(at) = static_cast<T>(best);
    });
  });
}

REFERENCE(center_crop_pad) {
  const View &x = args.in[0], &y = args.out[0];
  std::memset(y.data, 0, static_cast<size_t>(y.count()) * size_of(y.dtype));
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
