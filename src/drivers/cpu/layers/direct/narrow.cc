// SPDX-License-Identifier: Apache-2.0
// Convolutions with few output channels (pictures and masks at the end of a network), channels
// last, in one to three dimensions. Other kernels put output channels into the lanes of a vector,
// where one to eight of them leave most lanes empty.
#include <array>

#include "drivers/cpu/common/dense_images.h"
#include "drivers/cpu/isa.h"
#include "drivers/cpu/layers/direct/narrow_simd.h"
#include "drivers/cpu/linear/gemm_simd.h"
#include "drivers/cpu/onednn.h"
#include "drivers/cpu/threads.h"
#include "drivers/packed_weights.h"
#include "ops/layers/window.h"

namespace anymps::cpu {

namespace {

constexpr int64_t kMostLines = 128;  // of a window
constexpr int64_t kLeastRun = 32;    // numbers of a line of it: two vectors
constexpr double kNarrowFlopsInNs = 100;

// A window along one axis.
struct NarrowAxis {
  int64_t in = 1, out = 1, stride = 1, dilation = 1, before = 0, kernel = 1;
};

class NarrowConvolution final : public Kernel {
 public:
  NarrowConvolution(const KernelRequest& request, const Window& window, BufferRef weights)
      : weights_(std::move(weights)), has_bias_(request.has(2)), has_residual_(request.has(3)) {
    const Shape &x = request.in(0).shape, &y = request.out().shape;
    batch_ = x[0];
    row_.in_channels = x.back();
    row_.out_channels = y.back();
    row_.activation = tile_activation(request.attrs, "alpha", "beta");
    const size_t across = window.rank() - 1;
    for (size_t i = 0; i < across; ++i)
      axes_[2 - across + i] = {
          x[i + 1],        y[i + 1], window.strides[i], window.dilations[i], window.pads_begin[i],
          window.kernel[i]};
    row_.in_width = x[across + 1];
    row_.out_width = y[across + 1];
    row_.width_stride = window.strides[across];
    row_.width_dilation = window.dilations[across];
    row_.left = window.pads_begin[across];
    row_.kernel_width = window.kernel[across];
  }

  void run(const KernelArgs& args) const override {
    const double products = static_cast<double>(row_.out_width * row_.out_channels) *
                            static_cast<double>(axes_[0].kernel * axes_[1].kernel) *
                            static_cast<double>(row_.kernel_width * row_.in_channels);
    parallel_for(0, batch_ * axes_[0].out * axes_[1].out, 2 * products / kNarrowFlopsInNs,
                 [&](int64_t first, int64_t last) {
                   for (int64_t i = first; i < last; ++i) run_row(args, i);
                 });
  }
  bool reads(size_t i) const override { return i != 1; }
  std::string detail() const override { return "narrow"; }

 private:
  void run_row(const KernelArgs& args, int64_t index) const {
    const NarrowAxis &deep = axes_[0], &down = axes_[1];
    const int64_t plane = index / down.out, image = plane / deep.out;
    const int64_t front = plane % deep.out * deep.stride - deep.before;
    const int64_t top = index % down.out * down.stride - down.before;
    std::array<const float*, kMostLines> lines{}, weights{};
    NarrowRow row = row_;
    const int64_t taps = row.kernel_width * row.in_channels * row.out_channels;
    for (int64_t a = 0; a < deep.kernel; ++a)
      for (int64_t b = 0; b < down.kernel; ++b) {
        const int64_t z = front + a * deep.dilation, y = top + b * down.dilation;
        if (z < 0 || z >= deep.in || y < 0 || y >= down.in) continue;
        lines[row.lines] = static_cast<const float*>(args.inputs[0]) +
                           ((image * deep.in + z) * down.in + y) * row.in_width * row.in_channels;
        weights[row.lines++] =
            static_cast<const float*>(weights_->data()) + (a * down.kernel + b) * taps;
      }
    row.x = lines.data();
    row.w = weights.data();
    const int64_t at = index * row.out_width * row.out_channels;
    if (has_bias_) row.bias = static_cast<const float*>(args.inputs[2]);
    if (has_residual_) row.residual = static_cast<const float*>(args.inputs[3]) + at;
    row.y = static_cast<float*>(args.outputs[0]) + at;
    run_narrow(row);
  }

  BufferRef weights_;
  bool has_bias_, has_residual_;
  int64_t batch_ = 0;
  NarrowAxis axes_[2];  // planes and lines
  NarrowRow row_;       // what all rows have in common
};

// [O, I, lines…, width] as [lines…, O, width, I].
void pack_narrow(const float* from, int64_t outputs, int64_t inputs, int64_t lines, int64_t width,
                 float* to) {
  for (int64_t line = 0; line < lines; ++line)
    for (int64_t o = 0; o < outputs; ++o)
      for (int64_t k = 0; k < width; ++k)
        for (int64_t i = 0; i < inputs; ++i)
          *to++ = from[((o * inputs + i) * lines + line) * width + k];
}

KernelPtr make_narrow(const KernelRequest& request, std::string& why) {
  const TensorDesc &x = request.in(0), &w = request.in(1), &y = request.out();
  if (!gemm_is_here()) return refuse(why, "only for AVX2 and AVX-512");
  if (y.count() == 0 || x.count() == 0) return refuse(why, "nothing to compute");
  if (!are_dense_images(request, 3, why)) return nullptr;
  if (request.attrs.i("groups") != 1) return refuse(why, "groups");
  if (y.shape.back() > kNarrowChannels)
    return refuse(why, fmt::format("{} output channels", y.shape.back()));
  if (!y.contiguous()) return refuse(why, "strides of the output");
  const Shape spatial(x.shape.begin() + 1, x.shape.end() - 1);
  const Window window =
      resolve_window(request.attrs, spatial, Shape(w.shape.begin() + 2, w.shape.end()));
  const int64_t width = window.kernel.back(), inputs = x.shape.back(), outputs = y.shape.back();
  const int64_t lines = element_count(window.kernel) / width;
  if (lines > kMostLines) return refuse(why, fmt::format("{} lines in a window", lines));
  if (lines * width == 1) return refuse(why, "the window is one pixel");
  if ((window.dilations.back() == 1 ? width * inputs : inputs) < kLeastRun)
    return refuse(why, fmt::format("{} channels", inputs));
  isa();
  BufferRef weights = request.packed->get(
      *request.constant(1), fmt::format("narrow {} {} {}", inputs, lines, width),
      static_cast<size_t>(w.count()) * sizeof(float), [&](const std::byte* plain, void* packed) {
        pack_narrow(reinterpret_cast<const float*>(plain), outputs, inputs, lines, width,
                    static_cast<float*>(packed));
      });
  return std::make_shared<NarrowConvolution>(request, window, std::move(weights));
}

const KernelRegistrar kNarrow("cpu", "conv", "narrow", 7, make_narrow);

}  // namespace

}  // namespace anymps::cpu
