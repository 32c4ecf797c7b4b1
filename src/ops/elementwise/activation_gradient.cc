// SPDX-License-Identifier: Apache-2.0
// Gradients of activations as separate ops: dy is the gradient of the result, x what the activation
// was given.
#include "ops/elementwise/elementwise_record.h"
#include "ops/expect.h"
#include "ops/gradient.h"

namespace anymps {

#define ACTIVATION_GRADIENT(name, text, math) \
  ELEMENTWISE(name, text, math).input("dy", kFloat).input("x", kFloat).output("dx")

ACTIVATION_GRADIENT(relu_gradient, "The gradient where x is positive, else 0.",
                    "dx = x > 0 ? dy : 0")
    .mps("reLUGradientWithIncomingGradient:sourceTensor:name:");
ACTIVATION_GRADIENT(sigmoid_gradient, "The gradient of the logistic function.",
                    "dx = dy * sigmoid(x) * (1 - sigmoid(x))")
    .mps("sigmoidGradientWithIncomingGradient:sourceTensor:name:")
    .domain("x", -6, 6);

ACTIVATION_GRADIENT(leaky_relu_gradient, "The gradient, times alpha where x is negative.",
                    "dx = x < 0 ? alpha * dy : dy")
    .mps("leakyReLUGradientWithIncomingGradient:sourceTensor:alphaTensor:name:")
    .input("alpha", kFloat, "T", "slope below 0; broadcasts");

OP(softmax_gradient)
    .doc("The gradient of softmax along an axis.")
    .formula("dx = s * (dy - sum(dy * s)) with s = softmax(x)")
    .mps("softMaxGradientWithIncomingGradient:sourceTensor:axis:name:")
    .input("dy", kFloat)
    .input("x", kFloat)
    .output("dx")
    .attr("axis", -1, "the axis of the softmax")
    .infer([](InferContext& ctx) {
      ctx.axis("axis", 1);
      expect_shape(ctx, 0, ctx.shape(1));
      ctx.set(0, ctx.shape(1));
    })
    .domain("x", -8, 8)
    .sample({"vector", {{7}, {7}}, {}})
    .sample({"last", {{2, 3, 33}, {2, 3, 33}}, {}})
    .sample({"middle", {{2, 5, 9}, {2, 5, 9}}, {{"axis", 1}}})
    .sample({"one", {{4, 1}, {4, 1}}, {{"axis", 1}}})
    .sample({"empty", {{0, 5}, {0, 5}}, {}})
    .sample({"empty_axis", {{3, 0}, {3, 0}}, {}});

GRADIENT(relu_gradient) {
  ctx.set(0, ctx.add("relu_gradient", {ctx.dy(), ctx.x(1)}));
  ctx.set(1, ctx.fill_like(ctx.x(1), 0));
}

GRADIENT(sigmoid_gradient) {
  const Term s = ctx.x(1).op("sigmoid");
  ctx.set(0, ctx.add("sigmoid_gradient", {ctx.dy(), ctx.x(1)}));
  ctx.set(1, ctx.dy() * ctx.x(0) * s * (1 - s) * (1 - s * 2));
}

GRADIENT(leaky_relu_gradient) {
  const Term below = ctx.x(1) < 0, dy = ctx.dy();
  ctx.set(0, where(below, dy * ctx.x(2), dy));
  ctx.set(1, ctx.fill_like(ctx.x(1), 0));
  ctx.set(2, where(below, dy * ctx.x(0), 0));
}

GRADIENT(softmax_gradient) {
  const int64_t axis = ctx.attrs().i("axis");
  const Term s = ctx.x(1).op("softmax", {{"axis", axis}});
  const Term mean = ctx.sum(ctx.x(0) * s, {axis < 0 ? axis + ctx.x().rank() : axis});
  ctx.through({s * (ctx.x(0) - mean)});
}

}  // namespace anymps
