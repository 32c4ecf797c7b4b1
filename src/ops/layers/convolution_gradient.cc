// SPDX-License-Identifier: Apache-2.0
// The gradients of convolutions to their input and to their weights.
#include "ops/expect.h"
#include "ops/layers/window.h"

namespace anymps {

namespace {

// Checks a forward convolution of x by w, and that its result has the shape of `gradient`.
void check_forward(const InferContext& ctx, const Dims& gradient, const Dims& x, const Dims& w) {
  ctx.check(x.size() >= 3 && x.size() <= 5 && w.size() == x.size(),
            "the convolution's input {} and weights {} must have one rank, 3 to 5", to_string(x),
            to_string(w));
  const TensorAxes axes = tensor_axes(ctx.attrs, x.size());
  const bool last = ctx.attrs.s("weights_layout") == "*IO";
  const size_t o = last ? w.size() - 1 : 0, i = last ? w.size() - 2 : 1, k = last ? 0 : 2;
  const int64_t groups = ctx.attrs.i("groups");
  ctx.check(groups >= 1, "groups is {}, must be at least 1", groups);
  ctx.check(!w[o].known() || w[o].value() % groups == 0,
            "the {} output channels cannot be divided into {} groups", w[o].str(), groups);
  ctx.check(may_equal(x[axes.channel], w[i] * groups),
            "the input {} has {} channels, but the weights {} with {} groups take {}", to_string(x),
            x[axes.channel].str(), to_string(w), groups, (w[i] * groups).str());
  Dims spatial, kernel, expected(x.size());
  for (size_t n = 0; n < axes.count; ++n) {
    spatial.push_back(x[axes.spatial + n]);
    kernel.push_back(w[k + n]);
  }
  const Dims out = window_outputs(ctx.attrs, spatial, kernel);
  expected[0] = x[0];
  expected[axes.channel] = w[o];
  for (size_t n = 0; n < axes.count; ++n) expected[axes.spatial + n] = out[n];
  ctx.check(may_equal(gradient, expected), "gradient has shape {}, must be {}", to_string(gradient),
            to_string(expected));
}

// The shape that is given; fresh extents while it is not known.
std::optional<Dims> given_shape(InferContext& ctx) {
  std::optional<Dims> shape = ctx.ints(2, "shape");
  if (!shape) {
    Dims fresh;
    for (size_t i = 0; i < ctx.shape(0).size(); ++i) fresh.push_back(ctx.fresh(std::to_string(i)));
    ctx.set(0, std::move(fresh));
    return std::nullopt;
  }
  for (const Dim& extent : *shape)
    ctx.check(!extent.known() || extent.value() >= 0, "shape {} has a negative extent",
              to_string(*shape));
  return shape;
}

void infer_data_gradient(InferContext& ctx) {
  const Dims &gradient = ctx.shape(0), &w = ctx.shape(1);
  const std::optional<Dims> x = given_shape(ctx);
  if (!x) return;
  check_forward(ctx, gradient, *x, w);
  ctx.set(0, *x);
}

void infer_weights_gradient(InferContext& ctx) {
  const Dims &gradient = ctx.shape(0), &x = ctx.shape(1);
  const std::optional<Dims> w = given_shape(ctx);
  if (!w) return;
  check_forward(ctx, gradient, x, *w);
  ctx.set(0, *w);
}

double gradient_cost(const Attrs&, const std::vector<Shape>& in, const std::vector<Shape>& out) {
  double count = 2;
  for (const Shape& shape : {in[0], out[0]})
    for (const int64_t extent : shape) count *= static_cast<double>(extent);
  return count;
}

// The gradient of the result, the other factor of the products, and what the convolution was.
auto of_convolution(const char* factor, const char* doc) {
  return [=](OpWriter& op) -> OpWriter& {
    return op.input("gradient", kFloat, "T", "of the convolution's result")
        .input(factor, kFloat, "T", doc)
        .ints("shape", "of the result", "I", "of the result; wins over the attribute")
        .with(grouped_window)
        .attr("layout", "channels_first", layout_choices(), "of the input and the gradient")
        .attr("weights_layout", "OI*", {"OI*", "*IO"})
        .facts(kSums)
        .cost(gradient_cost)
        .tolerance({.f32 = 5e-5, .f16 = 5e-3, .bf16 = 4e-2, .f64 = 1e-10})
        .no_layout_tests();
  };
}

}  // namespace

OP(conv_data_gradient)
    .doc(
        "The gradient of conv to its input, of which the shape is given. Depthwise when "
        "groups is the number of channels.")
    .formula("dx[n,c,p*stride+k*dilation-pad] += gradient[n,o,p] * w[o,c,k]")
    .mps(
        "convolution2DDataGradientWithIncomingGradientTensor:weightsTensor:outputShape:"
        "forwardConvolutionDescriptor:name:")
    .mps(
        "convolution2DDataGradientWithIncomingGradientTensor:weightsTensor:"
        "outputShapeTensor:forwardConvolutionDescriptor:name:")
    .mps(
        "convolution3DDataGradientWithIncomingGradientTensor:weightsTensor:outputShape:"
        "forwardConvolutionDescriptor:name:")
    .mps(
        "convolution3DDataGradientWithIncomingGradientTensor:weightsTensor:"
        "outputShapeTensor:forwardConvolutionDescriptor:name:")
    .mps(
        "depthwiseConvolution2DDataGradientWithIncomingGradientTensor:weightsTensor:"
        "outputShape:descriptor:name:")
    .mps(
        "depthwiseConvolution3DDataGradientWithIncomingGradientTensor:weightsTensor:"
        "outputShape:descriptor:name:")
    .with(of_convolution("w", "[O, C/groups, kernel…], or [kernel…, C/groups, O] for *IO"))
    .output("dx")
    .infer(infer_data_gradient)
    .sample({"1d", {{2, 4, 9}, {4, 3, 3}}, {{"shape", Ints{2, 3, 11}}}})
    .sample({"2d strided",
             {{1, 6, 6, 5}, {6, 4, 3, 5}},
             {{"shape", Ints{1, 4, 12, 13}}, {"strides", Ints{2, 3}}, {"pads", Ints{1, 2, 1, 2}}}})
    .sample({"2d shape input",
             {{1, 4, 5, 5}, {4, 3, 2, 2}, {4}},
             {{"dilations", Ints{2, 2}}},
             {{2, {1, 3, 7, 7}}}})
    .sample({"2d depthwise",
             {{2, 8, 9, 9}, {8, 1, 3, 3}},
             {{"shape", Ints{2, 8, 9, 9}}, {"groups", 8}, {"pads", Ints{1, 1, 1, 1}}}})
    .sample({"2d grouped channels_last *IO",
             {{1, 6, 5, 6}, {3, 2, 2, 6}},
             {{"shape", Ints{1, 8, 6, 4}},
              {"groups", 2},
              {"layout", "channels_last"},
              {"weights_layout", "*IO"}}})
    .sample({"2d same_upper",
             {{1, 4, 4, 4}, {4, 3, 3, 2}},
             {{"shape", Ints{1, 3, 7, 8}}, {"strides", Ints{2, 2}}, {"auto_pad", "same_upper"}}})
    .sample({"3d", {{1, 3, 4, 4, 5}, {3, 2, 2, 3, 3}}, {{"shape", Ints{1, 2, 5, 6, 7}}}})
    .sample({"empty batch", {{0, 4, 4, 4}, {4, 3, 3, 3}}, {{"shape", Ints{0, 3, 6, 6}}}});

OP(conv_weights_gradient)
    .doc(
        "The gradient of conv to its weights, of which the shape is given. Of a transposed "
        "convolution too, when gradient and x change places.")
    .formula("dw[o,c,k] = sum over n,p of gradient[n,o,p] * x[n,c,p*stride+k*dilation-pad]")
    .mps(
        "convolution2DWeightsGradientWithIncomingGradientTensor:sourceTensor:outputShape:"
        "forwardConvolutionDescriptor:name:")
    .mps(
        "convolution2DWeightsGradientWithIncomingGradientTensor:sourceTensor:"
        "outputShapeTensor:forwardConvolutionDescriptor:name:")
    .mps(
        "convolution3DWeightsGradientWithIncomingGradientTensor:sourceTensor:outputShape:"
        "forwardConvolutionDescriptor:name:")
    .mps(
        "convolution3DWeightsGradientWithIncomingGradientTensor:sourceTensor:"
        "outputShapeTensor:forwardConvolutionDescriptor:name:")
    .mps(
        "convolutionTranspose2DWeightsGradientWithIncomingGradientTensor:sourceTensor:"
        "outputShape:forwardConvolutionDescriptor:name:")
    .mps(
        "convolutionTranspose2DWeightsGradientWithIncomingGradientTensor:sourceTensor:"
        "outputShapeTensor:forwardConvolutionDescriptor:name:")
    .mps(
        "depthwiseConvolution2DWeightsGradientWithIncomingGradientTensor:sourceTensor:"
        "outputShape:descriptor:name:")
    .mps(
        "depthwiseConvolution3DWeightsGradientWithIncomingGradientTensor:sourceTensor:"
        "outputShape:descriptor:name:")
    .with(of_convolution("x", "the convolution's input"))
    .output("dw")
    .infer(infer_weights_gradient)
    .sample({"1d", {{2, 4, 9}, {2, 3, 11}}, {{"shape", Ints{4, 3, 3}}}})
    .sample({"2d strided",
             {{1, 6, 6, 5}, {1, 4, 12, 13}},
             {{"shape", Ints{6, 4, 3, 5}}, {"strides", Ints{2, 3}}, {"pads", Ints{1, 2, 1, 2}}}})
    .sample({"2d depthwise",
             {{2, 8, 9, 9}, {2, 8, 9, 9}},
             {{"shape", Ints{8, 1, 3, 3}}, {"groups", 8}, {"pads", Ints{1, 1, 1, 1}}}})
    .sample({"2d grouped channels_last *IO",
             {{1, 6, 5, 6}, {1, 8, 6, 4}, {4}},
             {{"groups", 2}, {"layout", "channels_last"}, {"weights_layout", "*IO"}},
             {{2, {3, 2, 2, 6}}}})
    .sample({"2d dilated same_lower",
             {{1, 4, 4, 4}, {1, 3, 7, 8}},
             {{"shape", Ints{4, 3, 2, 2}},
              {"strides", Ints{2, 2}},
              {"dilations", Ints{2, 2}},
              {"auto_pad", "same_lower"}}})
    .sample({"3d", {{1, 3, 4, 4, 5}, {1, 2, 5, 6, 7}}, {{"shape", Ints{3, 2, 2, 3, 3}}}})
    .sample({"empty batch", {{0, 4, 4, 4}, {0, 3, 6, 6}}, {{"shape", Ints{4, 3, 3, 3}}}});

}  // namespace anymps
