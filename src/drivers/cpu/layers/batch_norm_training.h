// SPDX-License-Identifier: Apache-2.0
// How batch normalization walks its tensors. Channels first, a channel is a run in each image;
// short runs are put together, so that vectors are long. Channels last, rows of all channels are
// cut into chunks by the shape alone: sums are then the same for any number of threads.
#pragma once

#include <algorithm>
#include <cmath>

#include "drivers/cpu/common/dense.h"
#include "drivers/cpu/common/dense_rows.h"
#include "drivers/cpu/common/gradient_ops.h"
#include "drivers/cpu/threads.h"
#include "ops/layers/window.h"

namespace anymps::cpu {

struct NormExtents {
  NormExtents(const Attrs& attrs, const Shape& shape) {
    const size_t axis = tensor_axes(attrs, shape.size()).channel;
    channels = shape[axis];
    for (size_t i = 0; i < shape.size(); ++i)
      if (i != axis) (i < axis ? outer : plane) *= shape[i];
  }
  int64_t count() const { return outer * plane; }  // elements of a channel
  bool last() const { return plane == 1; }
  int64_t outer = 1, channels = 0, plane = 1;
};

// Walks the elements of one channel in tiles, channels first.
template <typename A>
class ChannelTiles {
 public:
  static constexpr int64_t kTile = 2048;

  ChannelTiles(const NormExtents& extents, DType dtype) : e_(extents), rows_(dtype) {
    if (e_.plane > 0 && e_.plane <= kTile / 4) together_ = std::min(e_.outer, kTile / e_.plane);
  }

  // Calls fn(in, out, n) with tiles of the inputs; what it writes to `out` goes to `to` unless that
  // is null.
  template <size_t kIn, typename Fn>
  void each(int64_t channel, const void* const (&from)[kIn], void* to, Fn&& fn) const {
    alignas(64) A tiles[kIn + 1][kTile];
    const A* in[kIn];
    const auto place = [&](int64_t image) { return (image * e_.channels + channel) * e_.plane; };
    if (together_ <= 1) {
      for (int64_t image = 0; image < e_.outer; ++image)
        for (int64_t i = 0; i < e_.plane; i += kRowTile) {
          const int64_t n = std::min(kRowTile, e_.plane - i), first = place(image) + i;
          for (size_t k = 0; k < kIn; ++k) in[k] = rows_.read(from[k], first, n, tiles[k]);
          A* const out = to ? rows_.target(to, first, tiles[kIn]) : nullptr;
          fn(in, out, n);
          if (to) rows_.write(to, first, n, out);
        }
      return;
    }
    for (int64_t image = 0; image < e_.outer; image += together_) {
      const int64_t images = std::min(together_, e_.outer - image);
      for (size_t k = 0; k < kIn; ++k) {
        for (int64_t j = 0; j < images; ++j) {
          A* const tile = tiles[k] + j * e_.plane;
          const A* const run = rows_.read(from[k], place(image + j), e_.plane, tile);
          if (run != tile) std::copy_n(run, e_.plane, tile);
        }
        in[k] = tiles[k];
      }
      fn(in, to ? tiles[kIn] : nullptr, images * e_.plane);
      for (int64_t j = 0; to && j < images; ++j) {
        A* const tile = tiles[kIn] + j * e_.plane;
        A* const run = rows_.target(to, place(image + j), tile);
        if (run != tile) std::copy_n(tile, e_.plane, run);
        rows_.write(to, place(image + j), e_.plane, run);
      }
    }
  }

 private:
  NormExtents e_;
  DenseRows<A> rows_;
  int64_t together_ = 1;  // images whose runs make a tile
};

// Rows of all channels, channels last, in chunks.
class RowChunks {
 public:
  static constexpr int64_t kMost = 32, kLeast = 16384;  // chunks; elements of one

  RowChunks(int64_t rows, int64_t channels) : rows_(rows) {
    each_ =
        std::max({int64_t{1}, (rows + kMost - 1) / kMost, kLeast / std::max<int64_t>(channels, 1)});
    count_ = (rows + each_ - 1) / each_;
  }
  int64_t count() const { return count_; }
  int64_t each() const { return each_; }
  int64_t begin(int64_t chunk) const { return chunk * each_; }
  int64_t end(int64_t chunk) const { return std::min(rows_, (chunk + 1) * each_); }

 private:
  int64_t rows_, each_ = 1, count_ = 0;
};

// Some rows of n channels: where they lie, or a copy of halves.
template <typename A>
struct RowBlock {
  static constexpr int64_t kElements = 16 * kRowTile, kInCache = 4096;
  static int64_t rows_of(int64_t n) { return std::clamp<int64_t>(kInCache / n, 16, 128); }

  RowBlock(const DenseRows<A>& access, const void* from, int64_t row, int64_t count,
           int64_t channels, int64_t channel, int64_t n, A* buffer)
      : data(buffer), stride(n), rows(count) {
    const int64_t first = row * channels + channel;
    if (access.direct()) {
      data = access.read(from, first, n, buffer);
      stride = channels;
    } else {
      for (int64_t r = 0; r < count; ++r)
        access.read(from, first + r * channels, n, buffer + r * n);
    }
  }
  const A* data;
  int64_t stride;
  size_t rows;
};

// The mean and the sum of squared distances from it, put together from parts.
struct Moments {
  double count = 0, mean = 0, squares = 0, sum = 0;

  void add(double n, double part_mean, double part_squares) {
    const double all = count + n, distance = part_mean - mean;
    squares += part_squares + distance * distance * (count * n / all);
    mean += distance * (n / all);
    sum += part_mean * n;
    count = all;
  }
};

}  // namespace anymps::cpu
