// SPDX-License-Identifier: Apache-2.0
// Gradients of activations as separate ops: dy is the gradient of the result, x what the activation
// was given.
#include <numbers>

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

ACTIVATION_GRADIENT(gelu_gradient, "The gradient of gelu.",
                    "none: dx = dy * (P(x) + x * p(x)) with the normal distribution P and its "
                    "density p; tanh: dx = dy * s * (1 + x * (1 - s) * u') with s = sigmoid(u), "
                    "u = sqrt(8 / pi) * (x + 0.044715 * x^3)")
    .attr("approximate", "none", {"none", "tanh"}, "which of the two formulas")
    .domain("x", -6, 6);
ACTIVATION_GRADIENT(silu_gradient, "The gradient of silu.",
                    "dx = dy * s * (1 + x * (1 - s)) with s = sigmoid(x)")
    .domain("x", -6, 6);
ACTIVATION_GRADIENT(mish_gradient, "The gradient of mish.",
                    "dx = dy * (t + x * sigmoid(x) * (1 - t^2)) with t = tanh(ln(1 + exp(x)))")
    .domain("x", -6, 6);

ACTIVATION_GRADIENT(softplus_gradient, "The gradient of softplus.", "dx = dy * sigmoid(x)")
    .domain("x", -6, 6);
ACTIVATION_GRADIENT(log_sigmoid_gradient, "The gradient of log_sigmoid.", "dx = dy * sigmoid(-x)")
    .domain("x", -6, 6);
ACTIVATION_GRADIENT(hard_swish_gradient, "The gradient of hard_swish.",
                    "dx = x <= -3 ? 0 : x < 3 ? dy * (x / 3 + 0.5) : dy")
    .domain("x", -6, 6);
ACTIVATION_GRADIENT(hard_sigmoid_gradient, "The gradient of hard_sigmoid.",
                    "dx = 0 < alpha * x + beta < 1 ? alpha * dy : 0")
    .attr("alpha", 0.2, "slope")
    .attr("beta", 0.5, "value at 0")
    .domain("x", -6, 6);
ACTIVATION_GRADIENT(elu_gradient, "The gradient of elu.", "dx = x > 0 ? dy : dy * alpha * exp(x)")
    .attr("alpha", 1.0, "minus the limit for very negative x")
    .domain("x", -6, 6);
ACTIVATION_GRADIENT(hardtanh_gradient, "The gradient between two bounds, else 0.",
                    "dx = min < x < max ? dy : 0")
    .attr("min", -1.0, "lower bound")
    .attr("max", 1.0, "upper bound")
    .domain("x", -6, 6)
    .tolerance(kExact);
ACTIVATION_GRADIENT(threshold_gradient, "The gradient above a threshold, else 0.",
                    "dx = x > alpha ? dy : 0")
    .attr("alpha", 0.0, "the threshold")
    .domain("x", -6, 6)
    .tolerance(kExact);

#define RESULT_GRADIENT(name, text, math) \
  ELEMENTWISE(name, text, math)           \
      .input("dy", kFloat)                \
      .input("y", kFloat)                 \
      .output("dx")                       \
      .domain("y", -1, 1)

RESULT_GRADIENT(sigmoid_result_gradient, "The gradient of sigmoid, from its result.",
                "dx = dy * y * (1 - y)");
RESULT_GRADIENT(tanh_result_gradient, "The gradient of tanh, from its result.",
                "dx = dy * (1 - y^2)");

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

// Gradients of these gradients: through what they are written out.

GRADIENT(gelu_gradient) {
  const Term dy = ctx.x(0), x = ctx.x(1);
  if (ctx.attrs().s("approximate") == "none") {
    // The part of the normal distribution below x. Where 1 + erf(…) is a difference of numbers near
    // 1, gelu(x) / x is the same without it; no division by zero elsewhere.
    const Term tail = x < -1;
    const Term below = where(tail, x.op("gelu") / where(tail, x, -1),
                             (x * (1 / std::numbers::sqrt2)).op("erf") * 0.5 + 0.5);
    const Term density =
        (x * x * -0.5).op("exp") * (0.5 * std::numbers::sqrt2 * std::numbers::inv_sqrtpi);
    return ctx.through({dy * (below + x * density)});
  }
  const double scale = std::numbers::sqrt2 * std::numbers::inv_sqrtpi, cubic = 0.044715;
  const Term square = x * x;
  // (1 + tanh(z)) / 2 as sigmoid(2 z), which loses no tail.
  const Term s = (x * (square * cubic + 1) * (2 * scale)).op("sigmoid");
  const Term slope = (square * (3 * cubic) + 1) * (2 * scale);
  ctx.through({dy * (s * (x * (1 - s) * slope + 1))});
}

GRADIENT(silu_gradient) {
  const Term x = ctx.x(1), s = x.op("sigmoid");
  ctx.through({ctx.x(0) * (s * (x * (1 - s) + 1))});
}

GRADIENT(mish_gradient) {
  const Term x = ctx.x(1), t = x.op("softplus").op("tanh");
  ctx.through({ctx.x(0) * (t + x * x.op("sigmoid") * (1 - t * t))});
}

GRADIENT(softplus_gradient) { ctx.through({ctx.x(0) * ctx.x(1).op("sigmoid")}); }

GRADIENT(log_sigmoid_gradient) { ctx.through({ctx.x(0) * (-ctx.x(1)).op("sigmoid")}); }

GRADIENT(hard_swish_gradient) {
  const Term dy = ctx.x(0), x = ctx.x(1);
  ctx.through({where(x > -3, where(x < 3, dy * (x * (1.0 / 3) + 0.5), dy), 0)});
}

GRADIENT(hard_sigmoid_gradient) {
  const double alpha = ctx.attrs().f("alpha"), beta = ctx.attrs().f("beta");
  const Term y = ctx.x(1) * alpha + beta;
  ctx.through({where(both(y > 0, y < 1), ctx.x(0) * alpha, 0)});
}

GRADIENT(elu_gradient) {
  const Term dy = ctx.x(0), x = ctx.x(1);
  const Term above = x > 0;
  ctx.through({where(above, dy, dy * where(above, 0, x).op("exp") * ctx.attrs().f("alpha"))});
}

GRADIENT(hardtanh_gradient) {
  const Term x = ctx.x(1);
  ctx.through({where(both(x > ctx.attrs().f("min"), x < ctx.attrs().f("max")), ctx.x(0), 0)});
}

GRADIENT(threshold_gradient) {
  ctx.through({where(ctx.x(1) > ctx.attrs().f("alpha"), ctx.x(0), 0)});
}

GRADIENT(sigmoid_result_gradient) { ctx.through({ctx.x(0) * (ctx.x(1) * (1 - ctx.x(1)))}); }

GRADIENT(tanh_result_gradient) { ctx.through({ctx.x(0) * (1 - ctx.x(1) * ctx.x(1))}); }

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
