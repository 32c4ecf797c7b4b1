// SPDX-License-Identifier: Apache-2.0
// Depthwise convolutions in one or two dimensions, channels last, without oneDNN: its kernels are
// made for each shape, which takes longer than a run of most of these layers.
#include "drivers/cpu/common/dense_images.h"
#include "drivers/cpu/common/row_kernel.h"
#include "drivers/cpu/isa.h"
#include "drivers/cpu/layers/depthwise_simd.h"
#include "drivers/cpu/linear/packing/panel_packing.h"
#include "drivers/cpu/onednn.h"
#include "drivers/cpu/threads.h"
#include "drivers/packed_weights.h"
#include "ops/layers/window.h"

namespace anymps::cpu {

namespace {

constexpr double kProductNs = 0.02;  // of one weight and one element

struct Depthwise {
  int64_t batch = 1, in_height = 1, out_height = 1;
  int64_t height_stride = 1, height_dilation = 1, top = 0, kernel_height = 1;
  DepthwiseRow row;  // what all rows have in common
  bool has_bias = false, has_residual = false;
};

class DepthwiseKernel final : public RowKernel {
 public:
  DepthwiseKernel(const Depthwise& problem, BufferRef weights)
      : problem_(problem), weights_(std::move(weights)) {}

  void run(const KernelArgs& args) const override {
    const Depthwise& p = problem_;
    const double ns = kProductNs * static_cast<double>(p.row.out_width * p.row.channels *
                                                       p.kernel_height * p.row.kernel_width);
    parallel_for(0, p.batch * p.out_height, ns, [&](int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i)
        run_row(args, i / p.out_height, i % p.out_height, image_of(args, i / p.out_height), 0,
                static_cast<float*>(args.outputs[0]) + i * row_floats());
    });
  }
  bool reads(size_t i) const override { return i != 1; }
  std::string detail() const override { return "depthwise"; }

  RowShape result_rows() const override {
    return {problem_.batch, problem_.out_height, row_floats()};
  }
  RowShape input_rows() const override {
    const Depthwise& p = problem_;
    return {p.batch, p.in_height, p.row.in_width * p.row.channels};
  }
  double flops() const override {
    const Depthwise& p = problem_;
    return 2.0 * static_cast<double>(p.batch * p.out_height * row_floats() * p.kernel_height *
                                     p.row.kernel_width);
  }
  RowRange under(RowRange rows) const override {
    const Depthwise& p = problem_;
    const int64_t top = rows.first * p.height_stride - p.top,
                  bottom = (rows.last - 1) * p.height_stride - p.top +
                           (p.kernel_height - 1) * p.height_dilation + 1;
    const int64_t first = std::clamp<int64_t>(top, 0, p.in_height);
    return {first, std::clamp(bottom, first, p.in_height)};
  }
  void run_rows(const KernelArgs& args, int64_t image, RowRange rows, const float* x,
                int64_t x_first, float* y) const override {
    if (!x) {
      x = image_of(args, image);
      x_first = 0;
    }
    for (int64_t i = rows.first; i < rows.last; ++i, y += row_floats())
      run_row(args, image, i, x, x_first, y);
  }

 private:
  int64_t row_floats() const { return problem_.row.out_width * problem_.row.channels; }
  const float* image_of(const KernelArgs& args, int64_t image) const {
    return static_cast<const float*>(args.inputs[0]) +
           image * problem_.in_height * problem_.row.in_width * problem_.row.channels;
  }

  // `x` is row x_first of the image.
  void run_row(const KernelArgs& args, int64_t image, int64_t y, const float* x, int64_t x_first,
               float* to) const {
    const Depthwise& p = problem_;
    const auto input = [&](size_t i) { return static_cast<const float*>(args.inputs[i]); };
    const int64_t top = y * p.height_stride - p.top;
    // The first and the last row of the window that lie in the image.
    const int64_t d = p.height_dilation;
    const int64_t first = top < 0 ? (-top + d - 1) / d : 0;
    const int64_t last = std::min(p.kernel_height, (p.in_height - top + d - 1) / d);
    DepthwiseRow row = p.row;
    row.rows = std::max<int64_t>(last - first, 0);
    row.x_row = d * row.in_width * row.channels;
    row.w_row = row.kernel_width * row.channels;
    row.x = x + (top + first * d - x_first) * row.in_width * row.channels;
    row.w = static_cast<const float*>(weights_->data()) + first * row.w_row;
    if (p.has_bias) row.bias = input(2);
    if (p.has_residual) row.residual = input(3) + (image * p.out_height + y) * row_floats();
    row.y = to;
    run_depthwise(row);
  }

  Depthwise problem_;
  BufferRef weights_;
};

KernelPtr make_depthwise(const KernelRequest& request, std::string& why) {
  const TensorDesc &x = request.in(0), &w = request.in(1), &y = request.out();
  if (!depthwise_is_here()) return refuse(why, "only for AVX2 and AVX-512");
  if (y.count() == 0) return empty_kernel();
  const int64_t channels = x.shape.back(), groups = request.attrs.i("groups");
  if (!are_dense_images(request, 2, why)) return nullptr;
  if (groups == 1 || groups != channels || groups != y.shape.back())
    return refuse(why, "not depthwise");
  Depthwise p;
  p.row.activation = tile_activation(request.attrs, "alpha", "beta");
  if (!tile_has(p.row.activation.kind)) return refuse(why, "activation");
  const Shape spatial(x.shape.begin() + 1, x.shape.end() - 1);
  const Window window =
      resolve_window(request.attrs, spatial, Shape(w.shape.begin() + 2, w.shape.end()));
  const size_t across = window.rank() - 1;
  if (isa() == Isa::kAvx2 && window.strides[across] != 1)
    return refuse(why, "strides, which oneDNN's 256-bit code is faster with");
  p.batch = x.shape[0];
  if (across == 1) {
    p.in_height = spatial[0];
    p.out_height = y.shape[1];
    p.height_stride = window.strides[0];
    p.height_dilation = window.dilations[0];
    p.top = window.pads_begin[0];
    p.kernel_height = window.kernel[0];
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
  const int64_t taps = p.kernel_height * row.kernel_width;
  BufferRef weights = request.packed->get(
      *request.constant(1), fmt::format("depthwise {} {}", channels, taps),
      static_cast<size_t>(channels * taps) * sizeof(float),
      [&](const std::byte* plain, void* packed) {
        pack_panel({reinterpret_cast<const float*>(plain), taps, channels, 1, taps}, channels,
                   static_cast<float*>(packed));
      });
  return std::make_shared<DepthwiseKernel>(p, std::move(weights));
}

const KernelRegistrar kDepthwise("cpu", "conv", "depthwise", 6, make_depthwise);

}  // namespace

}  // namespace anymps::cpu
