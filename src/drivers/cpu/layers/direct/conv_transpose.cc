// SPDX-License-Identifier: Apache-2.0
// Transposed convolutions with channels last, in one or two dimensions, without oneDNN: what takes
// longest of them are large steps, which oneDNN has as a gradient, in parts that barely fill
// vectors. A row of the result is computed in phases. Pixel q * stride + phase - pad sees the taps
// phase + t * stride of the kernel over the pixels q - t of the image; pixels of a phase that
// follow each other are a tile. Phases with as many taps each are columns of one product, since
// they lie side by side.
#include "drivers/cpu/layers/convolution.h"
#include "drivers/cpu/layers/direct/rows.h"

namespace anymps::cpu {

namespace {

using direct::Phase;
using direct::Rows;
using direct::Span;

// One axis of a transposed window.
struct Steps {
  int64_t in = 1, out = 1, kernel = 1, stride = 1, begin = 0;

  int64_t most_taps() const { return (kernel + stride - 1) / stride; }
  int64_t taps(int64_t phase) const {
    return phase < kernel ? (kernel - phase + stride - 1) / stride : 0;
  }
};

int64_t floor_of(int64_t a, int64_t b) { return a >= 0 ? a / b : -((-a + b - 1) / b); }

struct Transposed {
  Steps height, width;
  int64_t groups = 1, in_channels = 1, out_channels = 1;  // channels of all groups

  int64_t columns() const { return out_channels / groups; }  // of a pixel and a group
  int64_t depth() const { return in_channels / groups; }

  // Whether all phases of a pixel are columns of one product: they fill vectors better, or as well.
  // Each must have as many taps, since a weight of 0 would make NaN of infinity.
  bool merged() const {
    return groups == 1 && width.stride > 1 && width.kernel % width.stride == 0;
  }

  // The pixels q from `from` to `to` in spans of one set of taps: of tap t there is pixel q - t of
  // the image, if it is one. Taps are numbered from the last, so that they lie in the image's
  // order.
  void add_spans(Phase& phase, int64_t from, int64_t to, int64_t taps, int64_t offset,
                 int64_t group, bool clipped) const {
    const int64_t most = width.most_taps();
    for (int64_t q = from; q < to;) {
      const auto low = [&](int64_t at) { return std::max<int64_t>(0, at - width.in + 1); };
      const auto high = [&](int64_t at) { return std::min(taps - 1, at); };
      const int64_t first = low(q), last = high(q);
      Span span;
      span.taps = std::max<int64_t>(0, last - first + 1);
      span.first = span.taps == 0 ? 0 : most - 1 - last;
      span.x = (q - last) * in_channels + group * depth();
      const int64_t y = q * width.stride + offset;  // the first pixel of the columns
      span.y = y * out_channels + phase.channel;
      span.begin = clipped ? std::max<int64_t>(0, -y) * out_channels : 0;
      span.end = clipped ? std::min(width.stride, width.out - y) * out_channels : phase.columns;
      const bool whole = span.begin == 0 && span.end == phase.columns;
      // Pixels that lie wholly in the row, and see the same taps, belong together.
      do {
        ++q;
        ++span.pixels;
      } while (whole && q < to && low(q) == first && high(q) == last &&
               (!clipped || (q + 1) * width.stride + offset <= width.out));
      phase.spans.push_back(span);
    }
  }
};

// A row of the image and one of the kernel for each row of the result.
void set_rows(Rows& rows, const Transposed& t) {
  const Steps& h = t.height;
  for (int64_t y = 0; y < h.out; ++y) {
    const int64_t q = (y + h.begin) / h.stride, phase = (y + h.begin) % h.stride;
    auto& under = rows.under.emplace_back();
    for (int64_t tap = 0; tap < h.taps(phase); ++tap)
      if (q - tap >= 0 && q - tap < h.in)
        under.push_back({(q - tap) * t.width.in * t.in_channels, phase + tap * h.stride});
  }
  for (int64_t phase = 0; phase < h.stride; ++phase)
    for (int64_t y = 0; y < h.out; ++y)
      if ((y + h.begin) % h.stride == phase) rows.order.push_back(y);
}

void set_phases(Rows& rows, const Transposed& t, bool merged) {
  const Steps& w = t.width;
  if (merged) {
    Phase& phase = rows.phases.emplace_back();
    phase.columns = w.stride * t.out_channels;
    t.add_spans(phase, w.begin / w.stride, (w.out - 1 + w.begin) / w.stride + 1, w.most_taps(),
                -w.begin, 0, true);
    return;
  }
  for (int64_t group = 0; group < t.groups; ++group)
    for (int64_t i = 0; i < w.stride; ++i) {
      Phase& phase = rows.phases.emplace_back();
      phase.columns = t.columns();
      phase.channel = group * t.columns();
      t.add_spans(phase, -floor_of(i - w.begin, w.stride),
                  floor_of(w.out - 1 + w.begin - i, w.stride) + 1, w.taps(i), i - w.begin, group,
                  false);
    }
}

KernelPtr make_direct_transpose(const KernelRequest& request, std::string& why) {
  if (request.out().count() == 0) return refuse(why, "the result is empty");
  if (!direct::can_go_by_rows(request, why)) return nullptr;
  const TensorDesc &x = request.in(0), &w = request.in(1), &y = request.out();
  const Window window =
      resolve_transposed_window(request.attrs, convolution::spatial_of(channels_second(x).shape),
                                convolution::spatial_of(w.shape));
  if (window.rank() > 2) return refuse(why, fmt::format("{} spatial axes", window.rank()));
  Transposed t;
  t.groups = request.attrs.i("groups");
  t.in_channels = x.shape.back();
  t.out_channels = y.shape.back();
  for (size_t i = 0; i < window.rank(); ++i) {
    if (window.dilations[i] != 1) return refuse(why, "dilations");
    if (window.pads_begin[i] < 0) return refuse(why, "pads below 0");
    (i + 1 == window.rank() ? t.width : t.height) = Steps{
        x.shape[i + 1], y.shape[i + 1], window.kernel[i], window.strides[i], window.pads_begin[i]};
  }
  if (t.height.stride == 1 && t.width.stride == 1) return refuse(why, "no strides");
  const int64_t lanes = direct::tile_shape().lanes;
  if (t.groups > 1 && t.columns() * 2 <= lanes) return refuse(why, "groups of few channels");
  const bool merged = t.merged();
  Rows rows;
  rows.batch = x.shape[0];
  rows.copies_x = !x.contiguous();
  rows.out_rows = t.height.out;
  rows.x_image = t.height.in * t.width.in * t.in_channels;
  rows.y_row = t.width.out * t.out_channels;
  rows.x_step = t.in_channels;
  rows.y_step = t.width.stride * t.out_channels;
  rows.channels = t.out_channels;
  rows.kernel_rows = t.height.kernel;
  rows.taps = t.width.most_taps();
  rows.depth = t.depth();
  rows.tap_step = t.in_channels;
  rows.activation = tile_activation(request.attrs, "alpha", "beta");
  set_rows(rows, t);
  set_phases(rows, t, merged);
  const int64_t taps = t.height.kernel * t.width.kernel;
  rows.weight_step = t.columns() * taps;
  rows.weight = [t, merged, taps](size_t phase, int64_t column, int64_t kernel_row,
                                  int64_t tap) -> std::optional<int64_t> {
    const int64_t group = merged ? 0 : static_cast<int64_t>(phase) / t.width.stride;
    const int64_t i =
        merged ? column / t.out_channels : static_cast<int64_t>(phase) % t.width.stride;
    const int64_t at = i + (t.width.most_taps() - 1 - tap) * t.width.stride;
    if (at >= t.width.kernel) return std::nullopt;
    return (group * t.depth() * t.columns() + column % t.columns()) * taps +
           kernel_row * t.width.kernel + at;
  };
  return direct::make_rows_kernel(
      request, std::move(rows),
      fmt::format("transposed {} {} {} {}", to_string(w.shape), t.groups, t.width.stride, merged),
      why);
}

const KernelRegistrar kDirectTranspose("cpu", "conv_transpose", "direct", 5, make_direct_transpose);

}  // namespace

}  // namespace anymps::cpu
