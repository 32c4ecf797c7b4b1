// SPDX-License-Identifier: Apache-2.0
// Deformable convolution: each element of the window is read at its own place.
#include "ops/layers/deform_conv.h"

namespace anymps {

namespace {

void infer_deform_conv(InferContext& ctx) {
  const DeformConvShapes shapes = deform_conv_shapes(ctx, 0);
  expect_shape(ctx, 2, shapes.offset);
  expect_shape(ctx, 3, {shapes.w[0]});
  expect_shape(ctx, 4, shapes.mask);
  ctx.set(0, shapes.y);
}

}  // namespace

OP(deform_conv)
    .doc(
        "Convolution in two spatial axes whose windows are bent: each of their elements is moved "
        "by an offset, interpolated there, 0 outside of x, and scaled by the mask. Offsets are "
        "[y, x] pairs, a set of them for each group of input channels.")
    .formula(
        "y[n,o,p] = sum over c,k of mask[n,k,p] * x[n,c,p*stride+k*dilation-pad+offset[n,k,p]] * "
        "w[o,c,k] + bias[o]")
    .with(deform_conv_inputs)
    .optional("bias", kFloat, "T", "[O]")
    .with(deform_conv_mask)
    .output("y")
    .with(deform_conv_attrs)
    .infer(infer_deform_conv)
    .tolerance({.f32 = 5e-5, .f16 = 5e-3, .bf16 = 4e-2, .f64 = 1e-10})
    .sample({"plain", {{1, 2, 5, 6}, {3, 2, 2, 2}, {1, 8, 4, 5}}, {}})
    .sample({"bias and mask",
             {{2, 4, 5, 5}, {2, 4, 3, 3}, {2, 18, 3, 3}, {2}, {2, 9, 3, 3}},
             {{"strides", Ints{2, 2}}, {"pads", Ints{1, 1, 1, 1}}}})
    .sample({"groups",
             {{1, 4, 6, 6}, {4, 2, 2, 2}, {1, 16, 4, 4}, {4}},
             {{"groups", 2}, {"offset_groups", 2}, {"dilations", Ints{2, 2}}}})
    .sample({"empty batch", {{0, 2, 5, 6}, {3, 2, 2, 2}, {0, 8, 4, 5}}, {}});

}  // namespace anymps
