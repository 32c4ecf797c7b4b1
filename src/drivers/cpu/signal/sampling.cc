// SPDX-License-Identifier: Apache-2.0
// grid_sample on the CPU: the neighbours of a place are found once and mixed for all channels.
#include "ops/signal/sampling.h"
#include "drivers/cpu/common/widen.h"
#include "drivers/cpu/cpu_kernel.h"
#include "drivers/cpu/threads.h"
#include "ops/layers/window.h"

namespace anymps::cpu {

namespace {

// x is [images, channels, spatial…] by its strides, y the same; places are counted over y's spatial
// extents in row-major order, in which the grid is dense.
template <typename T, typename G>
class GridSample {
 public:
  explicit GridSample(const KernelRequest& request)
      : x_(request.in(0)),
        y_(request.out()),
        sampling_(request.attrs, x_.shape, y_.shape),
        constant_(static_cast<T>(sampling_.constant)) {}

  void operator()(const KernelArgs& args) const {
    const auto channels = static_cast<double>(x_.shape[sampling_.axes.channel]);
    parallel_for(0, y_.shape[0] * sampling_.places, 30 + 8 * channels,
                 [&](int64_t begin, int64_t end) {
                   const auto* x = static_cast<const T*>(args.inputs[0]);
                   const auto* grid = static_cast<const G*>(args.inputs[1]);
                   auto* y = static_cast<T*>(args.outputs[0]);
                   if (x_.strides[sampling_.axes.channel] == 1) {
                     for (int64_t i = begin; i < end; ++i) pixel(x, grid, y, i);
                     return;
                   }
                   for (int64_t i = begin; i < end;) i += some(x, grid, y, i, end);
                 });
  }

 private:
  static constexpr size_t kMostCorners = 64;
  static constexpr size_t kPlaces = 128;    // worked on together, as far as their corners
  static constexpr size_t kEntries = 1024;  // are not more than these

  // The corners of a place: where in a channel they lie, and their weights.
  struct Corners {
    int64_t offsets[kMostCorners];
    T weights[kMostCorners];
    bool inside[kMostCorners];
    size_t count;
    int64_t y;  // where the result goes
  };

  void find(const G* grid, int64_t i, Corners& corners) const {
    const int64_t n = i / sampling_.places;
    int64_t rest = i % sampling_.places;
    const G* coordinates = grid + i * static_cast<int64_t>(sampling_.axes.count);
    GridAxis::Taps taps[3];
    int64_t y = n * y_.strides[0];
    for (size_t k = sampling_.axes.count; k-- > 0;) {
      const size_t axis = sampling_.axes.spatial + k;
      const int64_t at = rest % y_.shape[axis];
      rest /= y_.shape[axis];
      y += at * y_.strides[axis];
      taps[k] = sampling_.spatial[k].taps(
          static_cast<double>(coordinates[sampling_.axes.count - 1 - k]), at);
    }
    corners.y = y;
    corners.count = 1;
    auto& [offsets, weights, inside, count, ignored] = corners;
    offsets[0] = n * x_.strides[0];
    weights[0] = 1;
    inside[0] = true;
    for (size_t k = 0; k < sampling_.axes.count; ++k) {
      const size_t before = count;
      count *= taps[k].count;
      for (size_t t = taps[k].count; t-- > 0;)  // the first overwrites what the others read
        for (size_t c = 0; c < before; ++c) {
          const GridAxis::Tap& tap = taps[k].tap[t];
          offsets[t * before + c] = offsets[c] + tap.index * x_.strides[sampling_.axes.spatial + k];
          weights[t * before + c] = weights[c] * static_cast<T>(tap.weight);
          inside[t * before + c] = inside[c] && tap.index >= 0;
        }
    }
  }

  // One place in all channels, which lie side by side.
  void pixel(const T* x, const G* grid, T* y, int64_t i) const {
    Corners corners;
    find(grid, i, corners);
    y += corners.y;
    for (int64_t c = 0; c < x_.shape[sampling_.axes.channel]; ++c) {
      const int64_t channel = c * x_.strides[sampling_.axes.channel];
      T sum = 0;
      for (size_t k = 0; k < corners.count; ++k)
        sum +=
            corners.weights[k] * (corners.inside[k] ? x[corners.offsets[k] + channel] : constant_);
      y[c * y_.strides[sampling_.axes.channel]] = sum;
    }
  }

  // Some places from i on, channel by channel: a plane stays in the cache. Returns how many.
  int64_t some(const T* x, const G* grid, T* y, int64_t i, int64_t end) const {
    // Corners of place p are those from first[p] on; there are fewer where a weight is zero.
    int64_t offsets[kEntries], to[kPlaces];
    size_t first[kPlaces + 1] = {0}, places = 0;
    T weights[kEntries];
    bool inside[kEntries], all = true;
    while (places < kPlaces && i + static_cast<int64_t>(places) < end &&
           first[places] + kMostCorners <= kEntries) {
      Corners corners;
      find(grid, i + static_cast<int64_t>(places), corners);
      to[places] = corners.y;
      size_t at = first[places];
      for (size_t k = 0; k < corners.count; ++k) {
        inside[at] = corners.inside[k];
        if (!inside[at] && constant_ == 0) continue;  // nothing is added
        all = all && inside[at];
        offsets[at] = inside[at] ? corners.offsets[k] : 0;
        weights[at++] = corners.weights[k];
      }
      first[++places] = at;
    }
    // Some channels at a time: where the corners lie and what they weigh is read once for them.
    const auto mix = [&]<int64_t kPlanes>(int64_t c, auto value) {
      const T* planes[kPlanes];
      T* results[kPlanes];
      for (int64_t k = 0; k < kPlanes; ++k) {
        planes[k] = x + (c + k) * x_.strides[sampling_.axes.channel];
        results[k] = y + (c + k) * y_.strides[sampling_.axes.channel];
      }
      for (size_t p = 0; p < places; ++p) {
        T sums[kPlanes] = {};
        for (size_t at = first[p]; at < first[p + 1]; ++at)
          for (int64_t k = 0; k < kPlanes; ++k) sums[k] += weights[at] * value(planes[k], at);
        for (int64_t k = 0; k < kPlanes; ++k) results[k][to[p]] = sums[k];
      }
    };
    const auto channels = [&](auto value) {
      const int64_t count = x_.shape[sampling_.axes.channel];
      int64_t c = 0;
      for (; c + 4 <= count; c += 4) mix.template operator()<4>(c, value);
      for (; c < count; ++c) mix.template operator()<1>(c, value);
    };
    if (all)
      channels([&](const T* plane, size_t at) { return plane[offsets[at]]; });
    else
      channels(
          [&](const T* plane, size_t at) { return inside[at] ? plane[offsets[at]] : constant_; });
    return static_cast<int64_t>(places);
  }

  TensorDesc x_, y_;
  GridSampling sampling_;
  T constant_;
};

CPU_KERNEL(grid_sample, "corners") {
  const TensorDesc &x = request.in(0), &grid = request.in(1);
  if (is_half(x.dtype) || is_half(grid.dtype)) return widened(request, make_grid_sample, why);
  if (x.rank() > 5) return refuse(why, fmt::format("rank {}", x.rank()));
  if (!grid.contiguous()) return refuse(why, "grid is not contiguous");
  const bool f32 = grid.dtype == DType::kF32;
  if (x.dtype == DType::kF64)
    return f32 ? make_kernel(GridSample<double, float>(request))
               : make_kernel(GridSample<double, double>(request));
  return f32 ? make_kernel(GridSample<float, float>(request))
             : make_kernel(GridSample<float, double>(request));
}

}  // namespace

}  // namespace anymps::cpu
