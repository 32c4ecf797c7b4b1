// SPDX-License-Identifier: Apache-2.0
// Gradients of convolutions. To the input they are the transposed convolution; to the weights, a
// convolution of the input by the gradient, with batch and channels exchanged.
#include <algorithm>

#include "ops/gradients/axes.h"
#include "ops/gradients/fused_activation.h"
#include "ops/window.h"

namespace anymps {

namespace {

using Ints = std::vector<int64_t>;

Ints list(const Shape& shape) { return {shape.begin(), shape.end()}; }
Ints pads_of(const Window& window) {
  Ints pads = list(window.pads_begin);
  pads.insert(pads.end(), window.pads_end.begin(), window.pads_end.end());
  return pads;
}

// Extents of the spatial axes; fails where one is not known.
Shape spatial_of(GradientContext& ctx, const Term& value) {
  const TensorAxes axes = tensor_axes(ctx.attrs(), value.shape().size());
  Shape spatial;
  for (size_t i = 0; i < axes.count; ++i) {
    const Dim& extent = value.shape()[axes.spatial + i];
    if (!extent.known())
      ctx.refuse("spatial extents {} that are not known", to_string(value.shape()));
    spatial.push_back(extent.value());
  }
  return spatial;
}

Term transposed(const Term& value, const Ints& perm) {
  return value.op("transpose", {{"perm", perm}});
}

Term channels_first(GradientContext& ctx, const Term& value) {
  if (ctx.attrs().s("layout") == "channels_first") return value;
  Ints perm{0, value.rank() - 1};
  for (int64_t i = 1; i + 1 < value.rank(); ++i) perm.push_back(i);
  return transposed(value, perm);
}

// dw[o, c, k] = sum over n, p of wide[n, c, p * stride + k * dilation - pad] * narrow[n, o, p].
Term weights_gradient(GradientContext& ctx, Term wide, Term narrow, const Window& window) {
  const int64_t groups = ctx.attrs().i("groups"), rank = wide.rank();
  wide = channels_first(ctx, wide);
  narrow = channels_first(ctx, narrow);
  Ints swap = axes_from(0, rank);
  std::swap(swap[0], swap[1]);
  const Dim channels = wide.shape()[1], outputs = narrow.shape()[1];
  if (!channels.known() || !outputs.known()) ctx.refuse("the number of channels is not known");
  const int64_t group_channels = channels.value() / groups;
  if (wide.shape()[0].is(0)) {
    Ints shape{outputs.value(), group_channels};
    shape.insert(shape.end(), window.kernel.begin(), window.kernel.end());
    return ctx.add("fill", {Term(), ctx.scalar(0, wide.dtype())}, {{"shape", shape}});
  }
  Term x;
  if (groups == 1) {
    x = transposed(wide, swap);
  } else {  // [N, g, C/g, …] -> [C/g, g * N, …]
    const Extent batch = ctx.extent(wide, 0);
    Extents split{batch, groups, group_channels}, joined{group_channels, -1};
    for (int64_t i = 2; i < rank; ++i) {
      split.push_back(ctx.extent(wide, i));
      joined.push_back(ctx.extent(wide, i));
    }
    Ints perm = axes_from(0, rank + 1);
    std::swap(perm[0], perm[2]);
    x = ctx.reshape(transposed(ctx.reshape(wide, split), perm), joined);
  }
  Term dw = ctx.add("conv", {x, transposed(narrow, swap)},
                    {{"strides", list(window.dilations)},
                     {"dilations", list(window.strides)},
                     {"pads", pads_of(window)},
                     {"groups", groups}});
  dw = dw.op("slice", {{"starts", Ints(window.rank(), 0)},
                       {"ends", list(window.kernel)},
                       {"axes", axes_from(2, rank)}});
  return transposed(dw, swap);
}

Shape kernel_of(GradientContext& ctx, const Term& w, size_t first) {
  Shape kernel;
  for (size_t i = 0; i + 2 < w.shape().size(); ++i) {
    const Dim& extent = w.shape()[first + i];
    if (!extent.known()) ctx.refuse("the kernel's extents are not known");
    kernel.push_back(extent.value());
  }
  return kernel;
}

void bias_gradient(GradientContext& ctx) {
  if (!ctx.wants(2)) return;
  const Term dy = ctx.dy();
  const TensorAxes axes = tensor_axes(ctx.attrs(), dy.shape().size());
  ctx.set(2, ctx.sum(dy, axes_without(static_cast<int64_t>(axes.channel), dy.rank()), false));
}

}  // namespace

GRADIENT(conv) {
  if (through_activation(ctx, "alpha", "beta")) return;
  const Term x = ctx.x(0), dy = ctx.dy();
  bias_gradient(ctx);
  ctx.set(3, dy);
  if (!ctx.wants(0) && !ctx.wants(1)) return;
  const bool last = ctx.attrs().s("weights_layout") == "*IO";
  const int64_t rank = x.rank();
  Ints to_first{rank - 1, rank - 2}, to_last = axes_from(2, rank);
  for (int64_t i = 0; i + 2 < rank; ++i) to_first.push_back(i);
  to_last.insert(to_last.end(), {1, 0});
  const Term w = last ? transposed(ctx.x(1), to_first) : ctx.x(1);
  const Shape in = spatial_of(ctx, x), out = spatial_of(ctx, dy), kernel = kernel_of(ctx, w, 2);
  const Window window = resolve_window(ctx.attrs(), in, kernel);
  if (ctx.wants(0)) {
    Ints rest;  // of x, behind the last window
    for (size_t i = 0; i < in.size(); ++i)
      rest.push_back(in[i] + window.pads_begin[i] + window.pads_end[i] - window.span(i) -
                     (out[i] - 1) * window.strides[i]);
    ctx.set(0, ctx.add("conv_transpose", {dy, w},
                       {{"strides", list(window.strides)},
                        {"dilations", list(window.dilations)},
                        {"pads", pads_of(window)},
                        {"output_padding", rest},
                        {"groups", ctx.attrs().i("groups")},
                        {"layout", ctx.attrs().s("layout")}}));
  }
  if (ctx.wants(1)) {
    const Term dw = weights_gradient(ctx, x, dy, window);
    ctx.set(1, last ? transposed(dw, to_last) : dw);
  }
}

GRADIENT(conv_transpose) {
  if (through_activation(ctx, "alpha", "beta")) return;
  const Term x = ctx.x(0), w = ctx.x(1), dy = ctx.dy();
  bias_gradient(ctx);
  if (!ctx.wants(0) && !ctx.wants(1)) return;
  const Shape in = spatial_of(ctx, x), out = spatial_of(ctx, dy), kernel = kernel_of(ctx, w, 2);
  Window window = resolve_transposed_window(ctx.attrs(), in, kernel);
  // The gradient with the paddings as real elements, cut to what the windows reach.
  const TensorAxes axes = tensor_axes(ctx.attrs(), dy.shape().size());
  const auto rank = static_cast<size_t>(dy.rank());
  Ints pads(2 * rank, 0);
  for (size_t i = 0; i < in.size(); ++i) {
    const int64_t reach = (in[i] - 1) * window.strides[i] + window.span(i);
    pads[axes.spatial + i] = window.pads_begin[i];
    pads[rank + axes.spatial + i] = reach - out[i] - window.pads_begin[i];
    window.pads_begin[i] = window.pads_end[i] = 0;
  }
  const Term wide = dy.op("pad", {{"pads", pads}});
  if (ctx.wants(0))
    ctx.set(0, ctx.add("conv", {wide, w},
                       {{"strides", list(window.strides)},
                        {"dilations", list(window.dilations)},
                        {"groups", ctx.attrs().i("groups")},
                        {"layout", ctx.attrs().s("layout")}}));
  if (ctx.wants(1)) ctx.set(1, weights_gradient(ctx, wide, x, window));
}

}  // namespace anymps
