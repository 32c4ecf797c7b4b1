// SPDX-License-Identifier: Apache-2.0
// Depthwise convolutions in three dimensions, channels last, and those in one or two whose
// activation the tiles of `depthwise` do not have: planes under a window are summed one after the
// other, and the activation follows while a row is in the cache.
#include <array>

#include "drivers/cpu/common/dense_images.h"
#include "drivers/cpu/elementwise/tile_ops.h"
#include "drivers/cpu/layers/depthwise_simd.h"
#include "drivers/cpu/linear/packing/panel_packing.h"
#include "drivers/cpu/onednn.h"
#include "drivers/cpu/threads.h"
#include "drivers/packed_weights.h"
#include "ops/layers/window.h"

namespace anymps::cpu {

namespace {

constexpr double kTapNs = 0.02;  // of one weight and one element

struct DepthwisePlanes {
  int64_t batch = 1, in_height = 1, out_height = 1;
  int64_t in_depth = 1, out_depth = 1;
  int64_t depth_stride = 1, depth_dilation = 1, front = 0, kernel_depth = 1;
  int64_t height_stride = 1, height_dilation = 1, top = 0, kernel_height = 1;
  DepthwiseRow row;  // what all rows have in common
  bool has_bias = false, has_residual = false;
  const TileOp* later = nullptr;  // an activation that tiles do not have
  std::array<double, kTileParams> numbers{};
};

class DepthwiseVolume final : public Kernel {
 public:
  DepthwiseVolume(const DepthwisePlanes& problem, BufferRef weights)
      : problem_(problem), weights_(std::move(weights)) {}

  void run(const KernelArgs& args) const override {
    const DepthwisePlanes& p = problem_;
    const double ns =
        kTapNs * static_cast<double>(p.row.out_width * p.row.channels * p.kernel_depth *
                                     p.kernel_height * p.row.kernel_width);
    parallel_for(0, p.batch * p.out_depth * p.out_height, ns, [&](int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i) run_row(args, i);
    });
  }
  bool reads(size_t i) const override { return i != 1; }
  std::string detail() const override { return "depthwise"; }

 private:
  // The part of a window that lies in the image.
  struct Part {
    int64_t first, count;
  };
  static Part inside(int64_t start, int64_t dilation, int64_t taps, int64_t extent) {
    const int64_t first = start < 0 ? (-start + dilation - 1) / dilation : 0;
    const int64_t last = std::min(taps, (extent - start + dilation - 1) / dilation);
    return {first, std::max<int64_t>(last - first, 0)};
  }

  void run_row(const KernelArgs& args, int64_t index) const {
    const DepthwisePlanes& p = problem_;
    const auto input = [&](size_t i) { return static_cast<const float*>(args.inputs[i]); };
    const int64_t plane = index / p.out_height, image = plane / p.out_depth;
    const int64_t top = index % p.out_height * p.height_stride - p.top;
    const int64_t front = plane % p.out_depth * p.depth_stride - p.front;
    const Part down = inside(top, p.height_dilation, p.kernel_height, p.in_height);
    const Part deep = inside(front, p.depth_dilation, p.kernel_depth, p.in_depth);
    const int64_t line = p.row.in_width * p.row.channels;
    DepthwiseRow row = p.row;
    row.x_row = p.height_dilation * line;
    row.w_row = row.kernel_width * row.channels;
    const int64_t at = index * row.out_width * row.channels;
    row.y = static_cast<float*>(args.outputs[0]) + at;
    // Each plane of the window adds to the sums of those before it.
    const int64_t planes = std::max<int64_t>(deep.count, 1);
    for (int64_t k = 0; k < planes; ++k) {
      const int64_t tap = deep.first + k;
      row.rows = deep.count == 0 ? 0 : down.count;
      row.x = input(0) + ((image * p.in_depth + front + tap * p.depth_dilation) * p.in_height +
                          top + down.first * p.height_dilation) *
                             line;
      row.w = static_cast<const float*>(weights_->data()) +
              (tap * p.kernel_height + down.first) * row.w_row;
      row.bias = k == 0 && p.has_bias ? input(2) : nullptr;
      row.residual = k > 0 ? row.y : p.has_residual ? input(3) + at : nullptr;
      row.activation = k + 1 == planes ? p.row.activation : TileActivation();
      run_depthwise(row);
    }
    if (p.later)
      p.later->run(
          {{row.y}, row.y, static_cast<size_t>(row.out_width * row.channels), p.numbers.data()});
  }

  DepthwisePlanes problem_;
  BufferRef weights_;
};

KernelPtr make_depthwise_volume(const KernelRequest& request, std::string& why) {
  const TensorDesc &x = request.in(0), &w = request.in(1), &y = request.out();
  if (!depthwise_is_here()) return refuse(why, "only for AVX2 and AVX-512");
  if (y.count() == 0) return empty_kernel();
  const int64_t channels = x.shape.back(), groups = request.attrs.i("groups");
  if (!are_dense_images(request, 3, why)) return nullptr;
  if (groups == 1 || groups != channels || groups != y.shape.back())
    return refuse(why, "not depthwise");
  DepthwisePlanes p;
  p.row.activation = tile_activation(request.attrs, "alpha", "beta");
  if (!tile_has(p.row.activation.kind)) {
    p.later = find_tile_op(request.attrs.s("activation"), DType::kF32);
    if (!p.later) return refuse(why, "activation");
    p.numbers = {p.row.activation.alpha, p.row.activation.beta};
    p.row.activation = {};
  } else if (x.shape.size() < 5) {
    return refuse(why, "one or two spatial axes");
  }
  const Shape spatial(x.shape.begin() + 1, x.shape.end() - 1);
  const Window window =
      resolve_window(request.attrs, spatial, Shape(w.shape.begin() + 2, w.shape.end()));
  const size_t across = window.rank() - 1;
  p.batch = x.shape[0];
  if (across >= 1) {
    const size_t down = across - 1;
    p.in_height = spatial[down];
    p.out_height = y.shape[down + 1];
    p.height_stride = window.strides[down];
    p.height_dilation = window.dilations[down];
    p.top = window.pads_begin[down];
    p.kernel_height = window.kernel[down];
  }
  if (across == 2) {
    p.in_depth = spatial[0];
    p.out_depth = y.shape[1];
    p.depth_stride = window.strides[0];
    p.depth_dilation = window.dilations[0];
    p.front = window.pads_begin[0];
    p.kernel_depth = window.kernel[0];
  }
  DepthwiseRow& row = p.row;
  row.channels = channels;
  row.in_width = spatial[across];
  row.out_width = y.shape[across + 1];
  row.width_stride = window.strides[across];
  row.width_dilation = window.dilations[across];
  row.left = window.pads_begin[across];
  row.kernel_width = window.kernel[across];
  p.has_bias = request.has(2);
  p.has_residual = request.has(3);
  const int64_t taps = p.kernel_depth * p.kernel_height * row.kernel_width;
  BufferRef weights = request.packed->get(
      *request.constant(1), fmt::format("depthwise {} {}", channels, taps),
      static_cast<size_t>(channels * taps) * sizeof(float),
      [&](const std::byte* plain, void* packed) {
        pack_panel({reinterpret_cast<const float*>(plain), taps, channels, 1, taps}, channels,
                   static_cast<float*>(packed));
      });
  return std::make_shared<DepthwiseVolume>(p, std::move(weights));
}

const KernelRegistrar kDepthwiseVolume("cpu", "conv", "depthwise_rows", 6, make_depthwise_volume);

}  // namespace

}  // namespace anymps::cpu
