// SPDX-License-Identifier: Apache-2.0
// Convolutions in groups of few channels, channels last, in one or two dimensions, without oneDNN,
// which fills no vector with a group: several groups fill one here.
#include "drivers/cpu/common/copy.h"
#include "drivers/cpu/layers/convolution.h"
#include "drivers/cpu/layers/direct/grouped_simd.h"
#include "drivers/cpu/layers/direct/rows.h"
#include "drivers/cpu/threads.h"
#include "drivers/packed_weights.h"

namespace anymps::cpu {

namespace {

constexpr double kGroupedFlopsInNs = 40;

struct Grouped {
  int64_t batch = 1, in_height = 1, out_height = 1;
  int64_t height_stride = 1, height_dilation = 1, top = 0, kernel_height = 1;
  direct::GroupedRow row;  // what all rows have in common
  bool has_bias = false, has_residual = false;
};

class GroupedKernel final : public Kernel {
 public:
  GroupedKernel(const Grouped& problem, const TensorDesc& x, BufferRef weights)
      : problem_(problem), weights_(std::move(weights)) {
    if (x.contiguous()) return;
    copy_.emplace(sizeof(float), x.shape, contiguous_strides(x.shape), x.strides);
    scratch_ = static_cast<size_t>(x.count()) * sizeof(float);
  }

  void run(const KernelArgs& args) const override {
    const Grouped& p = problem_;
    const double ns = 2.0 *
                      static_cast<double>(p.row.out_width * p.row.channels * p.row.group_in *
                                          p.kernel_height * p.row.kernel_width) /
                      kGroupedFlopsInNs;
    if (copy_) copy_->run(args.scratch, args.inputs[0]);
    parallel_for(0, p.batch * p.out_height, ns, [&](int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i) run_row(args, i);
    });
  }
  bool reads(size_t i) const override { return i != 1; }
  size_t scratch_bytes() const override { return scratch_; }
  std::string detail() const override {
    return fmt::format("groups of {} and {}", problem_.row.group_in, problem_.row.group_channels);
  }

 private:
  void run_row(const KernelArgs& args, int64_t index) const {
    const Grouped& p = problem_;
    const auto input = [&](size_t i) { return static_cast<const float*>(args.inputs[i]); };
    const int64_t image = index / p.out_height, y = index % p.out_height;
    const int64_t top = y * p.height_stride - p.top, d = p.height_dilation;
    const int64_t first = top < 0 ? (-top + d - 1) / d : 0;
    const int64_t rest = p.in_height - top;
    const int64_t last = rest <= 0 ? 0 : std::min(p.kernel_height, (rest + d - 1) / d);
    direct::GroupedRow row = p.row;
    const int64_t image_row = row.in_width * row.in_channels;
    row.rows = std::max<int64_t>(last - first, 0);
    row.x_row = d * image_row;
    const float* x = copy_ ? static_cast<const float*>(args.scratch) : input(0);
    row.x = x + (image * p.in_height + top + first * d) * image_row;
    row.w = static_cast<const float*>(weights_->data()) + first * row.w_row;
    if (p.has_bias) row.bias = input(2);
    const int64_t at = index * row.out_width * row.channels;
    if (p.has_residual) row.residual = input(3) + at;
    row.y = static_cast<float*>(args.outputs[0]) + at;
    direct::run_grouped(row);
  }

  Grouped problem_;
  BufferRef weights_;
  std::optional<StridedCopy> copy_;  // of x, where it is not dense
  size_t scratch_ = 0;
};

KernelPtr make_grouped(const KernelRequest& request, std::string& why) {
  if (request.out().count() == 0) return refuse(why, "the result is empty");
  if (!direct::can_go_by_rows(request, why)) return nullptr;
  const TensorDesc &x = request.in(0), &y = request.out();
  const TensorDesc w = convolution::plain_weights(request, request.in(1));
  const int64_t groups = request.attrs.i("groups"), lanes = direct::tile_shape().lanes;
  Grouped p;
  direct::GroupedRow& row = p.row;
  row.in_channels = x.shape.back();
  row.channels = y.shape.back();
  row.group_in = row.in_channels / groups;
  row.group_channels = row.channels / groups;
  const bool fills = row.group_channels <= lanes && lanes % row.group_channels == 0;
  const int64_t in = row.group_in;
  if (groups == 1 || row.group_channels == 1 || !fills || in > row.group_channels ||
      in > direct::kMostOfGroup || (in & (in - 1)) != 0)
    return refuse(why, fmt::format("groups of {} and {}", in, row.group_channels));
  const Window window =
      resolve_window(request.attrs, convolution::spatial_of(channels_second(x).shape),
                     convolution::spatial_of(w.shape));
  if (window.rank() > 2) return refuse(why, fmt::format("{} spatial axes", window.rank()));
  const size_t across = window.rank() - 1;
  p.batch = x.shape[0];
  if (across == 1) {
    p.in_height = x.shape[1];
    p.out_height = y.shape[1];
    p.height_stride = window.strides[0];
    p.height_dilation = window.dilations[0];
    p.top = window.pads_begin[0];
    p.kernel_height = window.kernel[0];
  }
  row.in_width = x.shape[across + 1];
  row.out_width = y.shape[across + 1];
  row.width_stride = window.strides[across];
  row.width_dilation = window.dilations[across];
  row.left = window.pads_begin[across];
  row.kernel_width = window.kernel[across];
  row.activation = tile_activation(request.attrs, "alpha", "beta");
  if (!tile_has(row.activation.kind)) return refuse(why, "activation");
  row.w_row = row.kernel_width * in * lanes;
  row.w_vector = p.kernel_height * row.w_row;
  p.has_bias = request.has(2);
  p.has_residual = request.has(3);
  const int64_t taps = p.kernel_height * row.kernel_width,
                vectors = (row.channels + lanes - 1) / lanes;
  const Strides& at = w.strides;
  const int64_t row_stride = across == 1 ? at[2] : 0;
  BufferRef weights = request.packed->get(
      *request.constant(1),
      fmt::format("grouped {} {} {}", lanes, to_string(w.shape), to_string(w.strides)),
      static_cast<size_t>(vectors * row.w_vector) * sizeof(float),
      [&](const std::byte* plain, void* packed) {
        const auto* from = reinterpret_cast<const float*>(plain);
        auto* to = static_cast<float*>(packed);
        for (int64_t vector = 0; vector < vectors; ++vector)
          for (int64_t tap = 0; tap < taps; ++tap)
            for (int64_t c = 0; c < in; ++c)
              for (int64_t lane = 0; lane < lanes; ++lane) {
                const int64_t channel = vector * lanes + lane;
                *to++ =
                    channel < row.channels
                        ? from[channel * at[0] + c * at[1] + tap / row.kernel_width * row_stride +
                               tap % row.kernel_width * at.back()]
                        : 0;
              }
      });
  return std::make_shared<GroupedKernel>(p, x, std::move(weights));
}

const KernelRegistrar kGrouped("cpu", "conv", "grouped", 7, make_grouped);

}  // namespace

}  // namespace anymps::cpu
