// SPDX-License-Identifier: Apache-2.0
// Convolutions of f64 and integers, which oneDNN lacks, as products (typed_gemm.h). The elements
// under the windows are gathered while the product packs its operand, so no larger copy of the
// input is ever made. A transposed convolution and the gradient to the input are the same with
// windows that are walked backwards.
#include "drivers/cpu/kernel_family.h"
#include "drivers/cpu/layers/convolution.h"
#include "drivers/cpu/layers/window_walk.h"
#include "drivers/cpu/linear/typed_gemm_pack.h"
#include "drivers/cpu/linear/typed_product.h"

namespace anymps::cpu {

namespace {

using namespace convolution;

constexpr int64_t kMostWidth = 256;  // pixels of a panel
constexpr DTypeSet kTypedConvolution = kTypedGemm & ~kComplex;

// Elements under the windows of `count` pixels, to[(tap, channel), width].
template <typename T, typename Lane>
void gather_windows(const Walk& walk, const T* x, int64_t channels, int64_t channel_stride,
                    int64_t first, int64_t count, int64_t width, Lane* to) {
  Three pixels[kMostWidth];
  int64_t from[kMostWidth];
  for (int64_t i = 0; i < count; ++i) pixels[i] = place_of(first + i, walk.pixels);
  const int64_t taps = volume_of(walk.taps);
  for (int64_t tap = 0; tap < taps; ++tap) {
    const Three t = place_of(tap, walk.taps);
    bool inside = true;
    for (int64_t i = 0; i < count; ++i) {
      from[i] = walk.offset(pixels[i], t);
      inside = inside && from[i] != Walk::kOutside;
    }
    for (int64_t c = 0; c < channels; ++c, to += width, x += channel_stride) {
      if (inside)
        for (int64_t i = 0; i < count; ++i) to[i] = static_cast<Lane>(x[from[i]]);
      else
        for (int64_t i = 0; i < count; ++i)
          to[i] = from[i] == Walk::kOutside ? Lane{} : static_cast<Lane>(x[from[i]]);
      std::fill(to + count, to + width, Lane{});
    }
    x -= channels * channel_stride;
  }
}

// The result of a convolution: pixels times channels, from windows times weights.
struct Convolution {
  DType dtype = DType::kF64;
  int64_t batch = 1, groups = 1, slabs = 1, rows = 0;  // pixels of a slab
  Walk walk;
  int64_t in_channels = 0, out_channels = 0;                   // of a group
  int64_t image_stride = 0, channel_stride = 0;                // of the source
  int64_t group_weights = 0, weights_in = 0, weights_out = 0;  // strides
  Three weights_taps;

  int64_t depth() const { return volume_of(walk.taps) * in_channels; }

  void pack_windows(const void* x, int64_t entry, int64_t first, int64_t count, int64_t width,
                    void* to) const {
    const int64_t image = entry / (groups * slabs), group = entry / slabs % groups;
    with_lane(dtype, [&]<typename T, typename Lane>() {
      if constexpr (!scalar::kIsComplex<T>)
        gather_windows(
            walk,
            static_cast<const T*>(x) + image * image_stride + group * in_channels * channel_stride,
            in_channels, channel_stride, entry % slabs * rows + first, count, width,
            static_cast<Lane*>(to));
    });
  }
  void pack_weights(const void* w, int64_t entry, int64_t first, int64_t count, int64_t width,
                    void* to) const {
    const int64_t group = entry / slabs % groups;
    with_lane(dtype, [&]<typename T, typename Lane>() {
      if constexpr (!scalar::kIsComplex<T>) {
        const T* from = static_cast<const T*>(w) + group * group_weights + first * weights_out;
        for (int64_t tap = 0; tap < volume_of(walk.taps); ++tap) {
          const Three t = place_of(tap, walk.taps);
          int64_t offset = 0;
          for (size_t axis = 0; axis < 3; ++axis) offset += t[axis] * weights_taps[axis];
          pack_elements(from + offset, weights_in, weights_out, in_channels, count, width,
                        static_cast<Lane*>(to) + tap * in_channels * width);
        }
      }
    });
  }
};

// x and y as [N, C, spatial…]; the weights' axes of the channels of x and of y.
KernelPtr make_typed(const Convolution& given, const TensorDesc& y, TypedTail tail,
                     std::string& why) {
  const std::optional<int64_t> pixel = pixel_stride(y);
  if (!pixel) return refuse(why, "pixels of the result lie apart");
  const auto c = std::make_shared<Convolution>(given);
  const int64_t pixels = volume_of(c->walk.pixels);
  c->slabs = slabs_of(c->walk, static_cast<int64_t>(size_of(c->dtype)) * pixels * c->depth());
  c->rows = pixels / c->slabs;
  const int64_t channel = y.strides[1];
  TypedGemm::Problem p;
  p.dtype = c->dtype;
  p.depth = c->depth();
  p.batch = merge_loops(
      {c->batch, c->groups, c->slabs},
      {{0, 0, 0}, {0, 0, 0}, {y.strides[0], c->out_channels * channel, c->rows * *pixel}});
  const bool pixels_are_rows = channel == 1 && *pixel != 1;
  const auto windows = [c](auto... args) { c->pack_windows(args...); };
  const auto weights = [c](auto... args) { c->pack_weights(args...); };
  p.rows = pixels_are_rows ? c->rows : c->out_channels;
  p.columns = pixels_are_rows ? c->out_channels : c->rows;
  p.y = pixels_are_rows ? TypedGemm::Matrix{*pixel, channel} : TypedGemm::Matrix{channel, *pixel};
  p.pack_a = pixels_are_rows ? TypedGemm::Pack(windows) : TypedGemm::Pack(weights);
  p.pack_b = pixels_are_rows ? TypedGemm::Pack(weights) : TypedGemm::Pack(windows);
  return std::make_shared<TypedProduct>(c->dtype, pixels_are_rows ? 0 : 1, TypedGemm(std::move(p)),
                                        std::move(tail));
}

bool typed(const KernelRequest& request, std::string& why) {
  const DType dtype = request.out().dtype;
  if (!contains(kTypedConvolution, dtype))
    return refuse<bool>(why, fmt::format("dtype {}", name(dtype)));
  for (const size_t i : {0u, 1u})
    if (request.in(i).count() == 0) return refuse<bool>(why, "nothing to sum over");
  return true;
}

TypedTail tail_of(const KernelRequest& request, const TensorDesc& y) {
  TypedTail tail(request.attrs, "alpha", "beta");
  std::vector<Strides> strides{y.strides};
  if (request.has(2)) {
    tail.summands.push_back(2);
    Strides bias(y.shape.size(), 0);
    bias[1] = request.in(2).strides[0];
    strides.push_back(bias);
  }
  if (request.has(3)) {
    tail.summands.push_back(3);
    strides.push_back(activations(request, request.in(3)).strides);
  }
  tail.rows = Rows(make_loops(y.shape, std::move(strides)));
  return tail;
}

// `w` as its own axes: those of the source's channels and of the result's, then the kernel.
Convolution convolution_of(const KernelRequest& request, const TensorDesc& x, const TensorDesc& w,
                           const TensorDesc& y, size_t in_axis) {
  Convolution c;
  c.dtype = y.dtype;
  c.batch = x.shape[0];
  c.groups = request.attrs.i("groups");
  c.in_channels = x.shape[1] / c.groups;
  c.out_channels = y.shape[1] / c.groups;
  c.image_stride = x.strides[0];
  c.channel_stride = x.strides[1];
  c.group_weights = w.shape[0] / c.groups * w.strides[0];
  c.weights_in = w.strides[in_axis];
  c.weights_out = w.strides[1 - in_axis];
  c.weights_taps = lifted(spatial_strides(w), 0);
  return c;
}

KernelPtr make_typed_conv(const KernelRequest& request, std::string& why) {
  if (request.out().count() == 0) return empty_kernel();
  if (!typed(request, why)) return nullptr;
  const TensorDesc x = activations(request, request.in(0)), y = activations(request, request.out()),
                   w = plain_weights(request, request.in(1));
  Convolution c = convolution_of(request, x, w, y, 1);
  const Window window = resolve_window(request.attrs, spatial_of(x.shape), spatial_of(w.shape));
  c.walk = Walk::forward(window, x.shape, y.shape, spatial_strides(x));
  return make_typed(c, y, tail_of(request, y), why);
}

KernelPtr make_typed_transpose(const KernelRequest& request, std::string& why) {
  if (request.out().count() == 0) return empty_kernel();
  if (!typed(request, why)) return nullptr;
  const TensorDesc x = activations(request, request.in(0)), y = activations(request, request.out());
  const TensorDesc& w = request.in(1);
  Convolution c = convolution_of(request, x, w, y, 0);
  const Window window =
      resolve_transposed_window(request.attrs, spatial_of(x.shape), spatial_of(w.shape));
  c.walk = Walk::backward(window, x.shape, y.shape, spatial_strides(x));
  return make_typed(c, y, tail_of(request, y), why);
}

KernelPtr make_typed_data_gradient(const KernelRequest& request, std::string& why) {
  if (request.out().count() == 0) return empty_kernel();
  if (!typed(request, why)) return nullptr;
  const TensorDesc dy = activations(request, request.in(0)),
                   dx = activations(request, request.out()),
                   w = plain_weights(request, request.in(1));
  Convolution c = convolution_of(request, dy, w, dx, 0);
  const Window window = resolve_window(request.attrs, spatial_of(dx.shape), spatial_of(w.shape));
  c.walk = Walk::backward(window, dy.shape, dx.shape, spatial_strides(dy));
  return make_typed(c, dx, {}, why);
}

const KernelFamily kTypedConvolutions("typed", 15,
                                      {{"conv", make_typed_conv},
                                       {"conv_transpose", make_typed_transpose},
                                       {"conv_data_gradient", make_typed_data_gradient}});

}  // namespace

}  // namespace anymps::cpu
