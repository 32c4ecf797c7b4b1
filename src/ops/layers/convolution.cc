// SPDX-License-Identifier: Apache-2.0
// Convolutions of one, two and three spatial axes, grouped, depthwise and transposed. Bias,
// residual and activation are part of the op, so that a fused convolution is not a new op.
#include "ops/expect.h"
#include "ops/layers/window.h"
#include "semantics/fused_activation.h"

namespace anymps {

namespace {

Dims spatial_of(const TensorAxes& axes, const Dims& shape) {
  const auto first = shape.begin() + static_cast<std::ptrdiff_t>(axes.spatial);
  return {first, first + static_cast<std::ptrdiff_t>(axes.count)};
}

Dims with_axes(const TensorAxes& axes, const Dim& batch, const Dim& channels, const Dims& spatial) {
  Dims shape(axes.count + 2);
  shape[0] = batch;
  shape[axes.channel] = channels;
  for (size_t i = 0; i < axes.count; ++i) shape[axes.spatial + i] = spatial[i];
  return shape;
}

void check_groups(const InferContext& ctx, const Dim& channels, const char* what) {
  const int64_t groups = ctx.attrs.i("groups");
  ctx.check(groups >= 1, "groups is {}, must be at least 1", groups);
  if (channels.known() && channels.value() % groups != 0) [[unlikely]]
    ctx.check(false, "the {} {} channels cannot be divided into {} groups", channels.str(), what,
              groups);
}

void check_activation(const InferContext& ctx) {
  const Activation activation = parse_activation(ctx.attrs.s("activation"));
  ctx.check(is_float(ctx.dtype(0)) || activation <= Activation::kClamp,
            "activation '{}' needs floats, the inputs are {}", ctx.attrs.s("activation"),
            name(ctx.dtype(0)));
  ctx.check(activation != Activation::kClamp || ctx.attrs.f("alpha") <= ctx.attrs.f("beta"),
            "activation clamp has alpha {} above beta {}", ctx.attrs.f("alpha"),
            ctx.attrs.f("beta"));
}

// x and w have one rank, so one tells that of the other.
Dims convolved_shape(const InferContext& ctx) {
  if (!ctx.type(0).ranked) expect_rank(ctx, 1, 3, 5);
  Dims x = shape_of_rank(ctx, 0, ctx.type(1).shape.size());
  if (!ctx.type(0).ranked) return x;
  expect_rank(ctx, 0, 3, 5);
  expect_rank(ctx, 1, ctx.rank(0), ctx.rank(0));
  return x;
}

void infer_conv(InferContext& ctx) {
  const Dims x = convolved_shape(ctx);
  const Dims& w = ctx.shape(1);
  const TensorAxes axes = tensor_axes(ctx.attrs, x.size());
  const bool last = ctx.attrs.s("weights_layout") == "*IO";
  const size_t o = last ? w.size() - 1 : 0, i = last ? w.size() - 2 : 1, k = last ? 0 : 2;
  const Dims kernel(w.begin() + static_cast<std::ptrdiff_t>(k),
                    w.begin() + static_cast<std::ptrdiff_t>(k + axes.count));
  const Dim& channels = x[axes.channel];
  const Dim groups = ctx.attrs.i("groups");
  check_groups(ctx, channels, "input");
  check_groups(ctx, w[o], "output");
  if (!may_equal(channels, w[i] * groups)) [[unlikely]]
    ctx.check(false, "x {} has {} channels, but w {} with {} groups takes {}", to_string(x),
              channels.str(), to_string(w), groups.str(), (w[i] * groups).str());
  check_activation(ctx);
  Dims y = with_axes(axes, x[0], w[o], window_outputs(ctx.attrs, spatial_of(axes, x), kernel));
  expect_shape(ctx, 2, {w[o]});
  expect_shape(ctx, 3, y);
  ctx.set(0, std::move(y));
}

void infer_conv_transpose(InferContext& ctx) {
  const Dims x = convolved_shape(ctx);
  const Dims& w = ctx.shape(1);
  const TensorAxes axes = tensor_axes(ctx.attrs, x.size());
  const Dim channels = known_of(x[axes.channel], w[0]), outputs = w[1] * ctx.attrs.i("groups");
  check_groups(ctx, channels, "input");
  if (!may_equal(x[axes.channel], w[0])) [[unlikely]]
    ctx.check(false, "x {} has {} channels, but w {} takes {}", to_string(x), x[axes.channel].str(),
              to_string(w), w[0].str());
  check_activation(ctx);
  const Dims kernel(w.begin() + 2, w.end());
  expect_shape(ctx, 2, {outputs});
  ctx.set(0, with_axes(axes, x[0], outputs,
                       transposed_outputs(ctx.attrs, spatial_of(axes, x), kernel)));
}

double count_of(const Shape& shape) {
  double count = 1;
  for (const int64_t extent : shape) count *= static_cast<double>(extent);
  return count;
}

double conv_cost(const Attrs& attrs, const std::vector<Shape>& in, const std::vector<Shape>& out) {
  const Shape& w = in[1];
  const int64_t filters = attrs.s("weights_layout") == "*IO" ? w.back() : w.front();
  return filters == 0 ? 0 : 2 * count_of(out[0]) * count_of(w) / static_cast<double>(filters);
}

double conv_transpose_cost(const Attrs&, const std::vector<Shape>& in, const std::vector<Shape>&) {
  const Shape& w = in[1];
  return w.front() == 0 ? 0 : 2 * count_of(in[0]) * count_of(w) / static_cast<double>(w.front());
}

OpWriter& fused_convolution(OpWriter& op) {
  return op.attr("activation", "none", activation_choices(), activation_doc())
      .attr("alpha", 0.0, "of the activation")
      .attr("beta", 0.0, "of the activation")
      .facts(kProduct)
      .layout(LayoutRule::kConvolution)
      .tolerance({.f32 = 5e-5, .f16 = 5e-3, .bf16 = 4e-2, .f64 = 1e-10});
}

}  // namespace

OP(conv)
    .doc(
        "Convolution over one to three spatial axes (cross-correlation: the kernel is not "
        "flipped), then bias, residual and activation. Depthwise when groups is the number of "
        "channels. It is also the gradient of a transposed one to its input. Integers wrap and "
        "take no activation but relu and clamp.")
    .formula(
        "y[n,o,p] = act(sum over c,k of x[n,c,p*stride+k*dilation-pad] * w[o,c,k] + bias[o] + "
        "residual[n,o,p])")
    .mps("convolution2DWithSourceTensor:weightsTensor:descriptor:name:")
    .mps("convolution3DWithSourceTensor:weightsTensor:descriptor:name:")
    .mps("depthwiseConvolution2DWithSourceTensor:weightsTensor:descriptor:name:")
    .mps("depthwiseConvolution3DWithSourceTensor:weightsTensor:descriptor:name:")
    .mps(
        "convolutionTranspose2DDataGradientWithIncomingGradientTensor:weightsTensor:outputShape:"
        "forwardConvolutionDescriptor:name:")
    .mps(
        "convolutionTranspose2DDataGradientWithIncomingGradientTensor:weightsTensor:"
        "outputShapeTensor:forwardConvolutionDescriptor:name:")
    .input("x", kReal, "T", kImageDoc)
    .input("w", kReal, "T", "[O, C/groups, kernel…], or [kernel…, C/groups, O] for *IO")
    .optional("bias", kReal, "T", "[O]")
    .optional("residual", kReal, "T", "added before the activation; has y's shape")
    .output("y")
    .with(grouped_window)
    .attr("layout", "channels_first", layout_choices(), "of x, residual and y")
    .attr("weights_layout", "OI*", {"OI*", "*IO"})
    .with(fused_convolution)
    .infer(infer_conv)
    .cost(conv_cost)
    .sample({"1d", {{2, 3, 11}, {4, 3, 3}, {4}}, {}})
    .sample({"1d strided", {{1, 2, 13}, {3, 2, 4}}, {{"strides", Ints{3}}, {"pads", Ints{2, 1}}}})
    .sample({"2d", {{2, 3, 9, 7}, {5, 3, 3, 3}, {5}}, {{"pads", Ints{1, 1, 1, 1}}}})
    .sample({"2d 1x1", {{2, 16, 6, 5}, {8, 16, 1, 1}, {8}}, {}})
    .sample({"2d 1x1 strided", {{1, 16, 7, 9}, {8, 16, 1, 1}}, {{"strides", Ints{2, 2}}}})
    .sample({"2d strided",
             {{1, 4, 12, 13}, {6, 4, 3, 5}},
             {{"strides", Ints{2, 3}}, {"pads", Ints{1, 2, 1, 2}}}})
    .sample({"2d asymmetric pads", {{1, 3, 6, 6}, {4, 3, 3, 3}, {4}}, {{"pads", Ints{0, 2, 3, 1}}}})
    .sample({"2d dilated",
             {{1, 3, 11, 12}, {4, 3, 3, 3}},
             {{"dilations", Ints{2, 3}}, {"pads", Ints{2, 3, 2, 3}}}})
    .sample({"2d stride above kernel", {{1, 3, 9, 10}, {2, 3, 2, 2}}, {{"strides", Ints{3, 4}}}})
    .sample({"2d same_upper",
             {{1, 3, 7, 8}, {4, 3, 3, 2}, {4}},
             {{"strides", Ints{2, 2}}, {"auto_pad", "same_upper"}}})
    .sample({"2d same_lower",
             {{1, 3, 8, 7}, {4, 3, 2, 4}},
             {{"strides", Ints{1, 2}}, {"auto_pad", "same_lower"}}})
    .sample({"2d valid",
             {{1, 3, 8, 7}, {4, 3, 3, 3}},
             {{"pads", Ints{9, 9, 9, 9}}, {"auto_pad", "valid"}}})
    .sample({"2d grouped",
             {{2, 6, 8, 8}, {8, 3, 3, 3}, {8}},
             {{"groups", 2}, {"pads", Ints{1, 1, 1, 1}}}})
    .sample({"2d depthwise",
             {{2, 8, 9, 9}, {8, 1, 3, 3}, {8}},
             {{"groups", 8}, {"pads", Ints{1, 1, 1, 1}}}})
    .sample({"2d depthwise 5x5 strided",
             {{1, 19, 11, 11}, {19, 1, 5, 5}, {19}},
             {{"groups", 19}, {"strides", Ints{2, 2}}, {"pads", Ints{2, 2, 2, 2}}}})
    .sample({"2d depthwise multiplier", {{1, 3, 7, 7}, {6, 1, 3, 3}}, {{"groups", 3}}})
    .sample({"2d channels_last",
             {{2, 9, 7, 3}, {5, 3, 3, 3}, {5}},
             {{"layout", "channels_last"}, {"pads", Ints{1, 1, 1, 1}}}})
    .sample({"2d channels_last *IO",
             {{1, 6, 7, 4}, {3, 2, 2, 6}, {6}},
             {{"layout", "channels_last"}, {"weights_layout", "*IO"}, {"groups", 2}}})
    .sample({"2d channels_last depthwise",
             {{1, 8, 8, 16}, {16, 1, 3, 3}, {16}},
             {{"layout", "channels_last"}, {"groups", 16}, {"pads", Ints{1, 1, 1, 1}}}})
    .sample({"2d residual",
             {{1, 4, 6, 6}, {8, 4, 3, 3}, {8}, {1, 8, 6, 6}},
             {{"pads", Ints{1, 1, 1, 1}}, {"activation", "relu"}}})
    .sample({"2d residual without bias", {{1, 4, 6, 6}, {8, 4, 1, 1}, {-1}, {1, 8, 6, 6}}, {}})
    .sample({"2d relu", {{1, 3, 8, 8}, {16, 3, 3, 3}, {16}}, {{"activation", "relu"}}})
    .sample({"2d clamp",
             {{1, 3, 8, 8}, {4, 3, 3, 3}, {4}},
             {{"activation", "clamp"}, {"alpha", 0.0}, {"beta", 6.0}}})
    .sample({"2d leaky_relu",
             {{1, 3, 6, 6}, {4, 3, 3, 3}, {4}},
             {{"activation", "leaky_relu"}, {"alpha", 0.1}}})
    .sample({"2d elu", {{1, 3, 6, 6}, {4, 3, 3, 3}, {4}}, {{"activation", "elu"}, {"alpha", 1.0}}})
    .sample({"2d gelu", {{1, 3, 6, 6}, {4, 3, 3, 3}, {4}}, {{"activation", "gelu"}}})
    .sample({"2d gelu_tanh", {{1, 3, 6, 6}, {4, 3, 3, 3}, {4}}, {{"activation", "gelu_tanh"}}})
    .sample({"2d silu", {{1, 3, 6, 6}, {4, 3, 3, 3}, {4}}, {{"activation", "silu"}}})
    .sample({"2d sigmoid", {{1, 3, 6, 6}, {4, 3, 3, 3}, {4}}, {{"activation", "sigmoid"}}})
    .sample({"2d tanh", {{1, 3, 6, 6}, {4, 3, 3, 3}, {4}}, {{"activation", "tanh"}}})
    .sample({"2d hard_swish",
             {{1, 8, 6, 6}, {8, 1, 3, 3}, {8}},
             {{"activation", "hard_swish"}, {"groups", 8}}})
    .sample({"2d hard_sigmoid",
             {{1, 3, 6, 6}, {4, 3, 3, 3}, {4}},
             {{"activation", "hard_sigmoid"}, {"alpha", 0.2}, {"beta", 0.5}}})
    .sample({"2d one pixel", {{1, 5, 1, 1}, {7, 5, 3, 3}, {7}}, {{"pads", Ints{1, 1, 1, 1}}}})
    .sample({"2d whole image", {{2, 3, 5, 6}, {4, 3, 5, 6}, {4}}, {}})
    .sample({"2d stem",
             {{1, 3, 32, 32}, {16, 3, 7, 7}, {16}},
             {{"strides", Ints{2, 2}}, {"pads", Ints{3, 3, 3, 3}}, {"activation", "relu"}}})
    .sample({"2d wide", {{1, 64, 10, 10}, {64, 64, 3, 3}, {64}}, {{"pads", Ints{1, 1, 1, 1}}}})
    .sample({"2d empty batch", {{0, 3, 6, 6}, {4, 3, 3, 3}, {4}}, {}})
    .sample({"3d", {{1, 2, 5, 6, 7}, {3, 2, 2, 3, 3}, {3}}, {{"pads", Ints{0, 1, 1, 1, 1, 1}}}})
    .sample({"3d depthwise",
             {{1, 4, 4, 5, 6}, {4, 1, 3, 3, 3}},
             {{"groups", 4}, {"strides", Ints{1, 2, 1}}, {"pads", Ints{1, 1, 1, 1, 1, 1}}}})
    .sample({"3d channels_last",
             {{2, 4, 5, 4, 3}, {2, 3, 2, 2, 2}, {2}},
             {{"layout", "channels_last"}, {"dilations", Ints{1, 2, 1}}}});

OP(conv_transpose)
    .doc(
        "Transposed convolution (the gradient of conv to its input), then bias and activation. "
        "output_shape, or auto_pad same_* (the extent times the stride), fixes the extents and "
        "with them the paddings; the odd element goes to the end for same_upper, else to the "
        "begin. Elements that no input reaches hold the bias.")
    .formula("y[n,o,p*stride+k*dilation-pad] += x[n,c,p] * w[c,o,k]; y = act(y + bias[o])")
    .mps("convolutionTranspose2DWithSourceTensor:weightsTensor:outputShape:descriptor:name:")
    .mps("convolutionTranspose2DWithSourceTensor:weightsTensor:outputShapeTensor:descriptor:name:")
    .input("x", kReal, "T", kImageDoc)
    .input("w", kReal, "T", "[C, O/groups, kernel…]")
    .optional("bias", kReal, "T", "[O]")
    .output("y")
    .with(window_steps)
    .attr("pads", Ints{}, "cut off the output: begins, then ends; empty: 0")
    .attr("output_padding", Ints{}, "added to the end of each spatial axis; empty: 0")
    .attr("output_shape", Ints{}, "spatial extents of y; pads is ignored")
    .attr("groups", 1)
    .with(window_auto_pad)
    .attr("layout", "channels_first", layout_choices(), "of x and y")
    .with(fused_convolution)
    .infer(infer_conv_transpose)
    .cost(conv_transpose_cost)
    .sample({"1d", {{2, 3, 7}, {3, 4, 3}, {4}}, {{"strides", Ints{2}}}})
    .sample({"2d", {{1, 3, 4, 5}, {3, 2, 3, 3}, {2}}, {}})
    .sample({"2d strided",
             {{2, 4, 5, 5}, {4, 3, 4, 4}, {3}},
             {{"strides", Ints{2, 2}}, {"pads", Ints{1, 1, 1, 1}}}})
    .sample({"2d 2x2 upsampling", {{1, 8, 6, 6}, {8, 4, 2, 2}, {4}}, {{"strides", Ints{2, 2}}}})
    .sample({"2d output_padding",
             {{1, 2, 4, 4}, {2, 3, 3, 3}},
             {{"strides", Ints{2, 2}}, {"pads", Ints{1, 1, 1, 1}}, {"output_padding", Ints{1, 1}}}})
    .sample({"2d output_shape",
             {{1, 1, 3, 3}, {1, 2, 3, 3}},
             {{"strides", Ints{3, 2}}, {"output_shape", Ints{10, 8}}}})
    .sample({"2d same_upper",
             {{1, 1, 3, 3}, {1, 2, 4, 3}},
             {{"strides", Ints{2, 2}}, {"auto_pad", "same_upper"}}})
    .sample({"2d same_lower",
             {{1, 1, 3, 3}, {1, 2, 4, 3}},
             {{"strides", Ints{2, 2}}, {"auto_pad", "same_lower"}}})
    .sample({"2d dilated", {{1, 2, 3, 4}, {2, 2, 2, 2}, {2}}, {{"dilations", Ints{2, 3}}}})
    .sample({"2d asymmetric pads", {{1, 2, 5, 4}, {2, 2, 3, 3}}, {{"pads", Ints{0, 1, 2, 0}}}})
    .sample({"2d grouped", {{1, 4, 4, 4}, {4, 3, 3, 3}, {6}}, {{"groups", 2}}})
    .sample({"2d depthwise",
             {{1, 6, 4, 5}, {6, 1, 3, 3}, {6}},
             {{"groups", 6}, {"strides", Ints{2, 2}}}})
    .sample({"2d channels_last",
             {{2, 4, 5, 3}, {3, 2, 3, 3}, {2}},
             {{"layout", "channels_last"}, {"strides", Ints{2, 1}}}})
    .sample({"2d relu", {{1, 3, 4, 4}, {3, 4, 3, 3}, {4}}, {{"activation", "relu"}}})
    .sample({"2d stride above kernel",
             {{1, 2, 3, 3}, {2, 2, 2, 2}, {2}},
             {{"strides", Ints{3, 4}}}})
    .sample({"2d empty batch", {{0, 3, 4, 4}, {3, 4, 3, 3}, {4}}, {}})
    .sample({"3d", {{1, 2, 3, 4, 3}, {2, 3, 2, 3, 2}, {3}}, {{"strides", Ints{2, 1, 2}}}});

}  // namespace anymps
