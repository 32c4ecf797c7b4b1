// SPDX-License-Identifier: Apache-2.0
// Gradients of convolutions. The gradients to the input and to the weights are separate ops; the
// three, and the transposed convolution, are each other's gradients.
#include "ops/gradient_parts.h"
#include "ops/layers/window.h"

namespace anymps {

namespace {

// The attributes of this node that say how windows lie.
NamedAttrs window_attrs(GradientContext& ctx) {
  NamedAttrs attrs;
  for (const NamedAttr& attr : ctx.attrs().named())
    for (const char* name :
         {"strides", "dilations", "pads", "groups", "auto_pad", "layout", "weights_layout"})
      if (attr.name == name) attrs.push_back(attr);
  return attrs;
}

Term data_gradient(GradientContext& ctx, const Term& dy, const Term& w, const Term& like,
                   const NamedAttrs& attrs) {
  return ctx.add("conv_data_gradient", {dy, w, ctx.shape_of(like)}, attrs);
}
Term weights_gradient(GradientContext& ctx, const Term& dy, const Term& x, const Term& like,
                      const NamedAttrs& attrs) {
  return ctx.add("conv_weights_gradient", {dy, x, ctx.shape_of(like)}, attrs);
}

void bias_gradient(GradientContext& ctx) {
  if (!ctx.wants(2)) return;
  const Term dy = ctx.dy();
  const TensorAxes axes = tensor_axes(ctx.attrs(), dy.shape().size());
  ctx.set(2, ctx.sum(dy, axes_without(static_cast<int64_t>(axes.channel), dy.rank()), false));
}

Shape known(GradientContext& ctx, const Term& value, size_t first, size_t count) {
  Shape extents;
  for (size_t i = 0; i < count; ++i) {
    const Dim& extent = value.shape()[first + i];
    if (!extent.known()) ctx.refuse("extents {} that are not known", to_string(value.shape()));
    extents.push_back(extent.value());
  }
  return extents;
}

}  // namespace

GRADIENT(conv) {
  if (through_activation(ctx, "alpha", "beta")) return;
  const Term x = ctx.x(0), w = ctx.x(1), dy = ctx.dy();
  const NamedAttrs attrs = window_attrs(ctx);
  if (ctx.wants(0)) ctx.set(0, data_gradient(ctx, dy, w, x, attrs));
  if (ctx.wants(1)) ctx.set(1, weights_gradient(ctx, dy, x, w, attrs));
  bias_gradient(ctx);
  ctx.set(3, dy);
}

GRADIENT(conv_data_gradient) {  // x is [dy, w]
  const Term dy = ctx.x(0), w = ctx.x(1), d = ctx.dy();
  const NamedAttrs attrs = window_attrs(ctx);
  if (ctx.wants(0)) ctx.set(0, ctx.add("conv", {d, w}, attrs));
  if (ctx.wants(1)) ctx.set(1, weights_gradient(ctx, dy, d, w, attrs));
}

GRADIENT(conv_weights_gradient) {  // x is [dy, x]
  const Term dy = ctx.x(0), x = ctx.x(1), d = ctx.dy();
  const NamedAttrs attrs = window_attrs(ctx);
  if (ctx.wants(0)) ctx.set(0, ctx.add("conv", {x, d}, attrs));
  if (ctx.wants(1)) ctx.set(1, data_gradient(ctx, dy, d, x, attrs));
}

// The transposed convolution is a convolution's gradient to its input, so its own is that
// convolution, of the gradient with its paddings as real elements, cut to what windows reach.
GRADIENT(conv_transpose) {
  if (through_activation(ctx, "alpha", "beta")) return;
  const Term x = ctx.x(0), w = ctx.x(1), dy = ctx.dy();
  bias_gradient(ctx);
  if (!ctx.wants(0) && !ctx.wants(1)) return;
  const TensorAxes axes = tensor_axes(ctx.attrs(), dy.shape().size());
  const Shape in = known(ctx, x, axes.spatial, axes.count),
              out = known(ctx, dy, axes.spatial, axes.count);
  const Window window = resolve_transposed_window(ctx.attrs(), in, known(ctx, w, 2, axes.count));
  const size_t rank = dy.rank();
  Ints pads(2 * rank, 0);
  for (size_t i = 0; i < in.size(); ++i) {
    const int64_t reach = (in[i] - 1) * window.strides[i] + window.span(i);
    pads[axes.spatial + i] = window.pads_begin[i];
    pads[rank + axes.spatial + i] = reach - out[i] - window.pads_begin[i];
  }
  const Term wide = dy.op("pad", {{"pads", pads}});
  const NamedAttrs attrs = {{"strides", Ints(window.strides.begin(), window.strides.end())},
                            {"dilations", Ints(window.dilations.begin(), window.dilations.end())},
                            {"groups", ctx.attrs().i("groups")},
                            {"layout", ctx.attrs().s("layout")}};
  if (ctx.wants(0)) ctx.set(0, ctx.add("conv", {wide, w}, attrs));
  if (ctx.wants(1)) ctx.set(1, weights_gradient(ctx, x, wide, w, attrs));
}

GRADIENT(deform_conv) {
  std::vector<Term> inputs{ctx.dy(), ctx.x(0), ctx.x(1), ctx.x(2)};
  if (ctx.has(4)) inputs.push_back(ctx.x(4));
  const std::vector<Term> results =
      ctx.add_all("deform_conv_gradient", inputs, ctx.attrs().named(), 4);
  for (size_t i = 0; i < 3; ++i) ctx.set(i, results[i]);
  if (ctx.wants(3)) ctx.set(3, ctx.sum(ctx.dy(), {0, 2, 3}, false));
  if (ctx.has(4)) ctx.set(4, results[3]);
}

NO_GRADIENT(deform_conv_gradient, "deformable convolution has no second gradient");

}  // namespace anymps
