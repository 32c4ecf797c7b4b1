// SPDX-License-Identifier: Apache-2.0
// The gradient of a convolution to its weights in f64: for each group the product of the result's
// gradient and the elements under the windows, summed over images and slabs in one order.
#include "drivers/cpu/layers/convolution.h"
#include "drivers/cpu/layers/window_walk.h"
#include "drivers/cpu/linear/typed_gemm.h"

namespace anymps::cpu {

namespace {

using namespace convolution;

// Columns of a product over pixels: the element under a tap, of a channel.
struct Columns {
  Walk walk;
  int64_t channels = 0, channel_stride = 0;  // of a group
  bool taps_outside = false;                 // the order of a column's number: (tap, channel)
  int64_t line = 0, lines = 0;               // of the slab

  void gather(const double* x, int64_t first, int64_t count, int64_t width, double* to) const {
    const int64_t taps = volume_of(walk.taps), across = walk.pixels[2];
    for (int64_t at = line; at < line + lines; ++at, to += across * width) {
      const Three pixel = place_of(at * across, walk.pixels);
      for (int64_t i = 0; i < width; ++i) {
        const int64_t column = first + i;
        const Three t = place_of(taps_outside ? column / channels : column % taps, walk.taps);
        const int64_t depth = walk.along(0, pixel[0], t[0]), height = walk.along(1, pixel[1], t[1]);
        if (i >= count || depth < 0 || height < 0) {
          for (int64_t w = 0; w < across; ++w) to[w * width + i] = 0;
          continue;
        }
        const double* from = x + depth * walk.strides[0] + height * walk.strides[1] +
                             (taps_outside ? column % channels : column / taps) * channel_stride;
        int64_t place = walk.first[2] + t[2] * walk.tap[2];
        for (int64_t w = 0; w < across; ++w, place += walk.step[2])
          to[w * width + i] =
              place < 0 || place >= walk.source[2] ? 0 : from[place * walk.strides[2]];
      }
    }
  }
};

class TypedWeightsGradient final : public Kernel {
 public:
  struct Slab {
    TypedGemm gemm;
    int64_t gradient;  // where its pixels begin
  };

  TypedWeightsGradient(int64_t images, int64_t gradient_image, int64_t x_image,
                       std::vector<Slab> slabs)
      : images_(images),
        gradient_image_(gradient_image),
        x_image_(x_image),
        slabs_(std::move(slabs)) {}

  void run(const KernelArgs& args) const override {
    for (int64_t image = 0; image < images_; ++image)
      for (const Slab& slab : slabs_) {
        const auto* gradient =
            static_cast<const double*>(args.inputs[0]) + image * gradient_image_ + slab.gradient;
        const auto* x = static_cast<const double*>(args.inputs[1]) + image * x_image_;
        slab.gemm.run(gradient, x, args.outputs[0], args.scratch, image > 0 || &slab != &slabs_[0]);
      }
  }
  size_t scratch_bytes() const override { return slabs_[0].gemm.scratch_bytes(); }
  std::string detail() const override { return "f64"; }

 private:
  int64_t images_, gradient_image_, x_image_;
  std::vector<Slab> slabs_;
};

KernelPtr make_typed_weights_gradient(const KernelRequest& request, std::string& why) {
  const TensorDesc& out = request.out();
  if (out.dtype != DType::kF64) return refuse(why, fmt::format("dtype {}", name(out.dtype)));
  if (out.count() == 0) return empty_kernel();
  for (const size_t i : {0u, 1u})
    if (request.in(i).count() == 0) return refuse(why, "nothing to sum over");
  const TensorDesc dy = activations(request, request.in(0)),
                   x = activations(request, request.in(1)), dw = plain_weights(request, out);
  const std::optional<int64_t> pixel = pixel_stride(dy);
  if (!pixel) return refuse(why, "pixels of the gradient lie apart");
  if (!out.contiguous()) return refuse(why, "strides of the result");
  const int64_t groups = request.attrs.i("groups"), outputs = dw.shape[0] / groups;
  Columns columns;
  const Window window = resolve_window(request.attrs, spatial_of(x.shape), spatial_of(dw.shape));
  columns.walk = Walk::forward(window, x.shape, dy.shape, spatial_strides(x));
  columns.channels = dw.shape[1];
  columns.channel_stride = x.strides[1];
  columns.taps_outside = request.attrs.s("weights_layout") == "*IO";
  const int64_t pixels = volume_of(columns.walk.pixels);
  TypedGemm::Problem p;
  p.dtype = DType::kF64;
  p.rows = outputs;
  p.columns = columns.channels * volume_of(columns.walk.taps);
  const int64_t slabs =
      slabs_of(columns.walk, static_cast<int64_t>(sizeof(double)) * pixels * p.columns);
  p.depth = pixels / slabs;
  p.a = {dy.strides[1], *pixel};
  p.y = {dw.strides[0], columns.taps_outside ? dw.strides[1] : 1};
  const int64_t x_group = columns.channels * x.strides[1];
  p.batch = merge_loops({groups}, {{outputs * dy.strides[1]}, {0}, {outputs * dw.strides[0]}});
  columns.lines = p.depth / columns.walk.pixels[2];
  std::vector<TypedWeightsGradient::Slab> parts;
  for (int64_t slab = 0; slab < slabs; ++slab) {
    columns.line = slab * columns.lines;
    p.pack_b = [columns, x_group](const void* from, int64_t group, int64_t first, int64_t count,
                                  int64_t width, void* to) {
      columns.gather(static_cast<const double*>(from) + group * x_group, first, count, width,
                     static_cast<double*>(to));
    };
    parts.push_back({TypedGemm(p), slab * p.depth * *pixel});
  }
  return std::make_shared<TypedWeightsGradient>(dy.shape[0], dy.strides[0], x.strides[0],
                                                std::move(parts));
}

const KernelRegistrar kTypedWeightsGradient("cpu", "conv_weights_gradient", "typed", 15,
                                            make_typed_weights_gradient);

}  // namespace

}  // namespace anymps::cpu
