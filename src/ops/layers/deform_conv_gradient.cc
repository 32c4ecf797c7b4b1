// SPDX-License-Identifier: Apache-2.0
// The gradients of deformable convolution to all that goes into it but the bias, whose gradient is
// a sum.
#include "ops/layers/deform_conv.h"

namespace anymps {

namespace {

void infer_deform_conv_gradient(InferContext& ctx) {
  const DeformConvShapes shapes = deform_conv_shapes(ctx, 1);
  expect_shape(ctx, 0, shapes.y);
  expect_shape(ctx, 3, shapes.offset);
  expect_shape(ctx, 4, shapes.mask);
  ctx.set(0, shapes.x);
  ctx.set(1, shapes.w);
  ctx.set(2, ctx.shape(3));
  ctx.set(3, shapes.mask);
}

}  // namespace

OP(deform_conv_gradient)
    .doc("The gradients of deform_conv to x, the weights, the offsets and the mask.")
    .formula(
        "dx, dw, doffset, dmask = sum over n,o,p of gradient[n,o,p] * the slopes of "
        "mask[n,k,p] * x[n,c,p*stride+k*dilation-pad+offset[n,k,p]] * w[o,c,k]")
    .input("gradient", kFloat, "T", "of deform_conv's y")
    .with(deform_conv_inputs)
    .with(deform_conv_mask)
    .outputs({"dx", "dw", "doffset", "dmask"})
    .with(deform_conv_attrs)
    .reference_only("rare: nobody has needed it fast")
    .infer(infer_deform_conv_gradient)
    .tolerance({.f32 = 5e-5, .f16 = 1e-2, .bf16 = 6e-2, .f64 = 1e-10})
    .sample({"plain", {{1, 3, 4, 5}, {1, 2, 5, 6}, {3, 2, 2, 2}, {1, 8, 4, 5}}, {}})
    .sample({"mask",
             {{2, 2, 3, 3}, {2, 4, 5, 5}, {2, 4, 3, 3}, {2, 18, 3, 3}, {2, 9, 3, 3}},
             {{"strides", Ints{2, 2}}, {"pads", Ints{1, 1, 1, 1}}}})
    .sample({"groups",
             {{1, 4, 4, 4}, {1, 4, 6, 6}, {4, 2, 2, 2}, {1, 16, 4, 4}},
             {{"groups", 2}, {"offset_groups", 2}, {"dilations", Ints{2, 2}}}})
    .sample({"empty batch", {{0, 3, 4, 5}, {0, 2, 5, 6}, {3, 2, 2, 2}, {0, 8, 4, 5}}, {}});

}  // namespace anymps
