// SPDX-License-Identifier: Apache-2.0
// Convolutions of images with few channels (the first layer of most models) to channels last,
// without oneDNN: its kernels fill vectors with input channels, or turn the image first. Here a
// tile is a few neighbouring pixels of the result. Under each lies a piece of every row of the
// window: the pixels of that row where channels are last, or a piece of a channel's row where they
// come first, as in most models' inputs.
#include "drivers/cpu/layers/convolution.h"
#include "drivers/cpu/layers/direct/rows.h"

namespace anymps::cpu {

namespace {

using direct::Phase;
using direct::Rows;
using direct::Span;

constexpr int64_t kFewChannels = 4;
// Pixels inside of a row for each at a border, which takes longer: with fewer oneDNN is faster.
constexpr int64_t kLeastInside = 8;

struct Axis {
  int64_t in = 1, out = 1, in_stride = 0, kernel = 1, stride = 1, dilation = 1, begin = 0;

  int64_t place(int64_t at) const { return at * stride - begin; }  // of the first tap
  // The taps that lie in the image.
  int64_t first(int64_t at) const {
    return std::min(kernel, (std::max<int64_t>(0, -place(at)) + dilation - 1) / dilation);
  }
  int64_t end(int64_t at) const {
    const int64_t room = in - place(at);
    return room <= 0 ? 0 : std::min(kernel, (room + dilation - 1) / dilation);
  }
};

void add_windows(Phase& phase, const Axis& width, int64_t channels) {
  for (int64_t at = 0; at < width.out;) {
    const int64_t first = width.first(at), end = width.end(at);
    Span span;
    span.taps = std::max<int64_t>(0, end - first);
    span.first = span.taps == 0 ? 0 : first;
    span.x = (width.place(at) + first * width.dilation) * width.in_stride;
    span.y = at * channels;
    span.end = phase.columns;
    do {
      ++at;
      ++span.pixels;
    } while (at < width.out && width.first(at) == first && width.end(at) == end);
    phase.spans.push_back(span);
  }
}

KernelPtr make_direct(const KernelRequest& request, std::string& why) {
  if (request.out().count() == 0) return refuse(why, "the result is empty");
  if (!direct::can_go_by_rows(request, why)) return nullptr;
  const TensorDesc &x = request.in(0), &y = request.out();
  const TensorDesc w = convolution::plain_weights(request, request.in(1));
  const int64_t channels = x.shape.back(), channel_stride = x.strides.back();
  if (request.attrs.i("groups") != 1) return refuse(why, "groups");
  if (channels > kFewChannels) return refuse(why, fmt::format("{} channels", channels));
  const Window window =
      resolve_window(request.attrs, convolution::spatial_of(channels_second(x).shape),
                     convolution::spatial_of(w.shape));
  if (window.rank() > 2) return refuse(why, fmt::format("{} spatial axes", window.rank()));
  Axis height, width;
  for (size_t i = 0; i < window.rank(); ++i)
    (i + 1 == window.rank() ? width : height) =
        Axis{x.shape[i + 1],    y.shape[i + 1],      x.strides[i + 1],    window.kernel[i],
             window.strides[i], window.dilations[i], window.pads_begin[i]};
  const bool pixels = channel_stride == 1 || channels == 1;
  if (!pixels && width.in_stride != 1) return refuse(why, "strides of x");
  Rows rows;
  rows.batch = x.shape[0];
  rows.out_rows = height.out;
  rows.x_image = x.strides[0];
  rows.channels = y.shape.back();
  rows.y_row = width.out * rows.channels;
  rows.x_step = width.stride * width.in_stride;
  rows.y_step = rows.channels;
  const int64_t planes = pixels ? 1 : channels;
  rows.kernel_rows = planes * height.kernel;
  rows.taps = width.kernel;
  rows.depth = pixels ? channels : 1;
  rows.tap_step = width.dilation * width.in_stride;
  rows.activation = tile_activation(request.attrs, "alpha", "beta");
  for (int64_t at = 0; at < height.out; ++at) {
    auto& under = rows.under.emplace_back();
    for (int64_t plane = 0; plane < planes; ++plane)
      for (int64_t tap = height.first(at); tap < height.end(at); ++tap)
        under.push_back(
            {plane * channel_stride + (height.place(at) + tap * height.dilation) * height.in_stride,
             plane * height.kernel + tap});
    rows.order.push_back(at);
  }
  Phase& phase = rows.phases.emplace_back();
  phase.columns = rows.channels;
  add_windows(phase, width, rows.channels);
  int64_t inside = 0;
  for (const Span& span : phase.spans) inside = std::max(inside, span.pixels);
  if (width.out - inside > inside / kLeastInside) return refuse(why, "narrow images");
  const Strides& at = w.strides;
  rows.weight_step = at[1];
  const int64_t tap_stride = at.back(), row_stride = window.rank() == 2 ? at[2] : 0;
  rows.weight = [=, kernel = height.kernel](size_t, int64_t column, int64_t kernel_row,
                                            int64_t tap) -> std::optional<int64_t> {
    return column * at[0] + kernel_row / kernel * at[1] + kernel_row % kernel * row_stride +
           tap * tap_stride;
  };
  return direct::make_rows_kernel(
      request, std::move(rows),
      fmt::format("direct {} {} {}", to_string(w.shape), pixels, to_string(w.strides)), why);
}

const KernelRegistrar kDirect("cpu", "conv", "direct", 8, make_direct);

}  // namespace

}  // namespace anymps::cpu
