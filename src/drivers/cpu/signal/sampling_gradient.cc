// SPDX-License-Identifier: Apache-2.0
// grid_sample_gradient on the CPU, for dense tensors. dx is made channel by channel and dgrid place
// by place, so that each element is summed by one thread and always in the same order.
#include <algorithm>

#include "drivers/cpu/common/dense.h"
#include "drivers/cpu/common/widen.h"
#include "drivers/cpu/threads.h"
#include "drivers/kernel.h"
#include "ops/layers/window.h"
#include "ops/signal/sampling.h"

namespace anymps::cpu {

namespace {

template <typename T, typename G>
class GridSampleGradient {
 public:
  explicit GridSampleGradient(const KernelRequest& request)
      : y_(request.in(0)),
        x_(request.in(1)),
        sampling_(request.attrs, x_.shape, y_.shape),
        constant_(static_cast<T>(sampling_.constant)) {}

  void operator()(const KernelArgs& args) const {
    const auto *dy = static_cast<const T*>(args.inputs[0]),
               *x = static_cast<const T*>(args.inputs[1]);
    const auto* grid = static_cast<const G*>(args.inputs[2]);
    const int64_t images = x_.shape[0], channels = x_.shape[sampling_.axes.channel];
    auto* dx = static_cast<T*>(args.outputs[0]);
    parallel_for(0, images * channels, 80 * static_cast<double>(sampling_.places),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t i = begin; i < end; ++i)
                     channel(dy, grid, dx, i / channels, i % channels);
                 });
    auto* dgrid = static_cast<G*>(args.outputs[1]);
    parallel_for(0, images * sampling_.places, 80 + 12 * static_cast<double>(channels),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t i = begin; i < end; ++i) place(dy, x, grid, dgrid, i);
                 });
  }

 private:
  static constexpr size_t kCorners = 64;
  // The elements that a place mixes: where they lie in a channel, -1 outside, their weights and how
  // these move with the coordinates.
  struct Corners {
    size_t count = 1;
    int64_t offset[kCorners];
    bool inside[kCorners];
    T weight[kCorners], slope[3][kCorners];
  };

  // Returns where the place lies in a channel of y.
  int64_t find(const G* grid, int64_t i, Corners& corners) const {
    const G* coordinates = grid + i * static_cast<int64_t>(sampling_.axes.count);
    int64_t rest = i % sampling_.places, at_y = 0;
    corners.count = 1;
    corners.offset[0] = 0;
    corners.inside[0] = true;
    corners.weight[0] = 1;
    for (size_t a = 0; a < 3; ++a) corners.slope[a][0] = 1;
    for (size_t k = sampling_.axes.count; k-- > 0;) {
      const size_t axis = sampling_.axes.spatial + k;
      const int64_t at = rest % y_.shape[axis];
      rest /= y_.shape[axis];
      at_y += at * y_.strides[axis];
      const GridAxis::SlopedTaps taps = sampling_.spatial[k].sloped_taps(
          static_cast<double>(coordinates[sampling_.axes.count - 1 - k]), at);
      const size_t before = corners.count;
      for (size_t t = taps.count; t-- > 0;)  // the first overwrites what the others read
        for (size_t c = 0; c < before; ++c) {
          const GridAxis::SlopedTap& tap = taps.tap[t];
          const size_t to = t * before + c;
          const auto weight = static_cast<T>(tap.weight);
          corners.offset[to] = corners.offset[c] + tap.index * x_.strides[axis];
          corners.inside[to] = corners.inside[c] && tap.index >= 0;
          corners.weight[to] = corners.weight[c] * weight;
          for (size_t a = 0; a < sampling_.axes.count; ++a)
            corners.slope[a][to] =
                corners.slope[a][c] * (a == k ? static_cast<T>(tap.slope) : weight);
        }
      corners.count = before * taps.count;
    }
    return at_y;
  }

  void channel(const T* dy, const G* grid, T* dx, int64_t n, int64_t c) const {
    dx += n * x_.strides[0] + c * x_.strides[sampling_.axes.channel];
    dy += n * y_.strides[0] + c * y_.strides[sampling_.axes.channel];
    // Channels of a channels_last tensor lie side by side.
    const int64_t step = sampling_.axes.channel == 1 ? 1 : x_.shape[sampling_.axes.channel];
    for (int64_t i = 0; i < sampling_.elements; ++i) dx[i * step] = 0;
    Corners corners;
    for (int64_t i = 0; i < sampling_.places; ++i) {
      const T g = dy[find(grid, n * sampling_.places + i, corners)];
      for (size_t k = 0; k < corners.count; ++k)
        if (corners.inside[k]) dx[corners.offset[k]] += g * corners.weight[k];
    }
  }

  void place(const T* dy, const T* x, const G* grid, G* dgrid, int64_t i) const {
    Corners corners;
    const int64_t n = i / sampling_.places;
    dy += n * y_.strides[0] + find(grid, i, corners);
    x += n * x_.strides[0];
    T sums[3] = {};
    for (int64_t c = 0; c < x_.shape[sampling_.axes.channel]; ++c) {
      const T g = dy[c * y_.strides[sampling_.axes.channel]];
      const T* plane = x + c * x_.strides[sampling_.axes.channel];
      for (size_t k = 0; k < corners.count; ++k) {
        const T value = g * (corners.inside[k] ? plane[corners.offset[k]] : constant_);
        for (size_t a = 0; a < sampling_.axes.count; ++a) sums[a] += value * corners.slope[a][k];
      }
    }
    for (size_t a = 0; a < sampling_.axes.count; ++a)
      dgrid[i * static_cast<int64_t>(sampling_.axes.count) +
            static_cast<int64_t>(sampling_.axes.count - 1 - a)] = static_cast<G>(sums[a]);
  }

  TensorDesc y_, x_;
  GridSampling sampling_;
  T constant_;
};

KernelPtr make_gradient(const KernelRequest& request, std::string& why) {
  const TensorDesc &x = request.in(1), &grid = request.in(2);
  if (is_half(x.dtype) || is_half(grid.dtype)) return widened(request, make_gradient, why);
  if (x.rank() > 5) return refuse(why, fmt::format("rank {}", x.rank()));
  if (request.outputs.size() != 2) return refuse(why, "not both gradients are wanted");
  if (!dense(request, why)) return nullptr;
  const bool f32 = grid.dtype == DType::kF32;
  if (x.dtype == DType::kF64)
    return f32 ? make_kernel(GridSampleGradient<double, float>(request))
               : make_kernel(GridSampleGradient<double, double>(request));
  return f32 ? make_kernel(GridSampleGradient<float, float>(request))
             : make_kernel(GridSampleGradient<float, double>(request));
}

const KernelRegistrar kGridSampleGradient("cpu", "grid_sample_gradient", "corners", 10,
                                          make_gradient);

}  // namespace

}  // namespace anymps::cpu
