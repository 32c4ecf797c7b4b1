// SPDX-License-Identifier: Apache-2.0
// Where the cells of regions of interest lie: for roi_align and max_roi_pool and for their
// gradients, on every driver.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <string_view>
#include <utility>

#include "base/error.h"

namespace anymps {

inline int64_t region_image(std::string_view op, double index, int64_t images) {
  require(index >= 0 && index < static_cast<double>(images),
          "[{}] a region is of image {}, there are {}", op, index, images);
  return static_cast<int64_t>(index);
}

// A region [x1, y1, x2, y2] of roi_align over cells.
class AlignedRegion {
 public:
  struct Rule {
    std::string_view op;  // the op's name, for messages
    bool half_pixel = true;
    double scale = 1;
    int64_t ratio = 0;              // samples a cell and side; 0: as many as it has elements
    int64_t rows = 1, columns = 1;  // of cells
    int64_t height = 1, width = 1;  // of the image
  };
  // One side of the region: where it starts, how long it is, its samples.
  struct Side {
    double start = 0, length = 0, cell = 0;
    int64_t cells = 1, samples = 0, extent = 0;
    double end_slope = 1;  // of the length along the end: 0 where the length is held at 1

    double place(int64_t at, int64_t k) const {
      return start + static_cast<double>(at) * cell +
             (static_cast<double>(k) + 0.5) * cell / static_cast<double>(samples);
    }
    // How the place moves with the end of the region; with the start it is 1 less this.
    double share(int64_t at, int64_t k) const {
      return end_slope *
             (static_cast<double>(at) +
              (static_cast<double>(k) + 0.5) / static_cast<double>(samples)) /
             static_cast<double>(cells);
    }
  };
  // The slopes are the weight's along the rows and the columns.
  struct Corner {
    int64_t row = 0, column = 0;
    double weight = 0, row_slope = 0, column_slope = 0;
  };
  struct Sample {
    int64_t row = 0, column = 0;  // of the samples of a cell
    bool inside = false;
    std::array<Corner, 4> corners;  // set where it is inside
  };

  // `roi` is region `number` of the op.
  AlignedRegion(const Rule& rule, const std::array<double, 4>& roi, int64_t number) {
    const auto coordinate = [&](size_t k) {
      const double value = roi[k] * rule.scale - (rule.half_pixel ? 0.5 : 0);
      require(std::isfinite(value), "[{}] region {} has the coordinate {}", rule.op, number, value);
      return value;
    };
    const auto side = [&](size_t k, int64_t cells, int64_t extent) {
      Side result;
      result.start = coordinate(k);
      result.length = coordinate(k + 2) - result.start;
      if (!rule.half_pixel && result.length < 1) result.length = 1, result.end_slope = 0;
      result.cells = cells;
      result.extent = extent;
      result.cell = result.length / static_cast<double>(cells);
      require(rule.ratio > 0 || result.cell < 1e6, "[{}] region {} is too large", rule.op, number);
      result.samples = rule.ratio > 0 ? rule.ratio : static_cast<int64_t>(std::ceil(result.cell));
      return result;
    };
    rows_ = side(1, rule.rows, rule.height);
    columns_ = side(0, rule.columns, rule.width);
  }

  double samples() const {
    return static_cast<double>(std::max<int64_t>(rows_.samples * columns_.samples, 1));
  }

  // How a sample's place in cell (row, column) moves with the end of the region.
  double row_share(int64_t row, const Sample& sample) const { return rows_.share(row, sample.row); }
  double column_share(int64_t column, const Sample& sample) const {
    return columns_.share(column, sample.column);
  }

  template <typename Fn>
  void for_each_sample(int64_t row, int64_t column, Fn&& fn) const {
    Sample sample;
    for (sample.row = 0; sample.row < rows_.samples; ++sample.row) {
      const double y = rows_.place(row, sample.row);
      for (sample.column = 0; sample.column < columns_.samples; ++sample.column) {
        const double x = columns_.place(column, sample.column);
        sample.inside = within(rows_, y) && within(columns_, x);
        if (sample.inside) fill(sample, y, x);
        fn(static_cast<const Sample&>(sample));
      }
    }
  }

 private:
  static bool within(const Side& side, double at) {
    return at >= -1 && at <= static_cast<double>(side.extent);
  }
  void fill(Sample& sample, double y, double x) const {
    const double last_row = static_cast<double>(rows_.extent - 1),
                 last_column = static_cast<double>(columns_.extent - 1);
    const double moves_y = y >= 0 && y <= last_row, moves_x = x >= 0 && x <= last_column;
    y = std::clamp(y, 0.0, last_row);
    x = std::clamp(x, 0.0, last_column);
    const auto top = static_cast<int64_t>(y), left = static_cast<int64_t>(x);
    const double ty = y - static_cast<double>(top), tx = x - static_cast<double>(left);
    for (size_t k = 0; k < 4; ++k) {
      const bool down = k & 2, right = k & 1;
      const double wy = down ? ty : 1 - ty, wx = right ? tx : 1 - tx;
      Corner& corner = sample.corners[k];
      corner.row = std::min(top + down, rows_.extent - 1);
      corner.column = std::min(left + right, columns_.extent - 1);
      corner.weight = wy * wx;
      corner.row_slope = (down ? moves_y : -moves_y) * wx;
      corner.column_slope = (right ? moves_x : -moves_x) * wy;
    }
  }

  Side rows_, columns_;
};

// A region [batch, x1, y1, x2, y2] of max_roi_pool over cells.
class PooledRegion {
 public:
  struct Rule {
    std::string_view op;  // the op's name, for messages
    double scale = 1;
    int64_t rows = 1, columns = 1;  // of cells
    int64_t images = 1, height = 1, width = 1;
  };

  // `roi` is region `number` of the op.
  PooledRegion(const Rule& rule, const std::array<double, 5>& roi, int64_t number)
      : rule_(rule), image_(region_image(rule.op, roi[0], rule.images)) {
    for (size_t k = 0; k < 4; ++k) {
      const double place = std::round(roi[k + 1] * rule.scale);
      require(std::abs(place) < 1e9, "[{}] region {} has the coordinate {}", rule.op, number,
              place);
      corners_[k] = static_cast<int64_t>(place);
    }
  }

  int64_t image() const { return image_; }
  // The rows, and the columns, of the image that are in those of cells: from, to.
  std::pair<int64_t, int64_t> rows_of(int64_t cell) const {
    return range(corners_[1], corners_[3], cell, rule_.rows, rule_.height);
  }
  std::pair<int64_t, int64_t> columns_of(int64_t cell) const {
    return range(corners_[0], corners_[2], cell, rule_.columns, rule_.width);
  }
  // Calls fn(row, column) for each element of a cell.
  template <typename Fn>
  void for_each_element(int64_t row, int64_t column, Fn&& fn) const {
    const auto [top, bottom] = rows_of(row);
    const auto [left, right] = columns_of(column);
    for (int64_t i = top; i < bottom; ++i)
      for (int64_t j = left; j < right; ++j) fn(i, j);
  }

 private:
  // The elements of cell `cell` of `cells`, between two corners.
  static std::pair<int64_t, int64_t> range(int64_t start, int64_t end, int64_t cell, int64_t cells,
                                           int64_t limit) {
    const double size =
        static_cast<double>(std::max<int64_t>(end - start + 1, 1)) / static_cast<double>(cells);
    const auto low = static_cast<int64_t>(std::floor(static_cast<double>(cell) * size));
    const auto high = static_cast<int64_t>(std::ceil(static_cast<double>(cell + 1) * size));
    return {std::clamp<int64_t>(low + start, 0, limit),
            std::clamp<int64_t>(high + start, 0, limit)};
  }

  Rule rule_;
  int64_t image_ = 0;
  std::array<int64_t, 4> corners_{};
};

}  // namespace anymps
