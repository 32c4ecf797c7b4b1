// SPDX-License-Identifier: Apache-2.0
// Activation functions of neural networks, and softmax, which is one along an axis.
#include "ops/elementwise/elementwise_record.h"
#include "ops/gradient.h"

namespace anymps {

#define ACTIVATION(name, dtypes, text, math) UNARY(name, dtypes, text, math).domain(-6, 6)

ACTIVATION(relu, kReal, "x where it is positive, else 0.", "y = max(x, 0)")
    .onnx("Relu")
    .aten("relu")
    .mps("reLUWithTensor:name:")
    .facts(kNoRounding)
    .tolerance(kExact);
ACTIVATION(leaky_relu, kFloat, "Relu with a slope for negative x.", "y = x < 0 ? alpha * x : x")
    .onnx("LeakyRelu", {"alpha"})
    .mps("leakyReLUWithTensor:alpha:name:")
    .attr("alpha", 0.01, "slope below 0");
ELEMENTWISE(prelu, "Leaky relu whose slope is a tensor that broadcasts with x.",
            "y = x < 0 ? slope * x : x")
    .onnx("PRelu")
    .mps("leakyReLUWithTensor:alphaTensor:name:")
    .input("x", kFloat)
    .input("slope", kFloat)
    .output("y");
ACTIVATION(elu, kFloat, "Exponential linear unit.", "y = x < 0 ? alpha * (exp(x) - 1) : x")
    .onnx("Elu", {"alpha"})
    .attr("alpha", 1.0, "minus the limit for very negative x");
ACTIVATION(selu, kFloat, "Scaled exponential linear unit.",
           "y = gamma * (x < 0 ? alpha * (exp(x) - 1) : x)")
    .onnx("Selu", {"alpha", "gamma"})
    .attr("alpha", 1.67326319217681884765625, "scale below 0")
    .attr("gamma", 1.05070102214813232421875, "scale of all");
ACTIVATION(celu, kFloat, "Continuously differentiable elu.",
           "y = max(x, 0) + min(0, alpha * (exp(x / alpha) - 1))")
    .onnx("Celu", {"alpha"})
    .attr("alpha", 1.0, "minus the limit for very negative x");
ACTIVATION(gelu, kFloat, "Gaussian error linear unit.",
           "none: y = x / 2 * (1 + erf(x / sqrt(2))); "
           "tanh: y = x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3)))")
    .onnx("Gelu", {"approximate"})
    .attr("approximate", "none", {"none", "tanh"}, "which of the two formulas");
ACTIVATION(silu, kFloat, "x times its sigmoid; also called swish.", "y = x / (1 + exp(-x))")
    .aten("silu");
ACTIVATION(mish, kFloat, "x times the tanh of its softplus.", "y = x * tanh(ln(1 + exp(x)))")
    .onnx("Mish")
    .aten("mish");
ACTIVATION(softplus, kFloat, "A smooth relu.", "y = ln(1 + exp(x))").onnx("Softplus");
ACTIVATION(softsign, kFloat, "A slow sigmoid in (-1, 1).", "y = x / (1 + |x|)").onnx("Softsign");
ACTIVATION(sigmoid, kFloat, "The logistic function.", "y = 1 / (1 + exp(-x))")
    .onnx("Sigmoid")
    .aten("sigmoid")
    .mps("sigmoidWithTensor:name:");
ACTIVATION(hard_sigmoid, kFloat, "A piecewise linear sigmoid.",
           "y = min(max(alpha * x + beta, 0), 1)")
    .onnx("HardSigmoid", {"alpha", "beta"})
    .attr("alpha", 0.2, "slope")
    .attr("beta", 0.5, "value at 0");
ACTIVATION(hard_swish, kFloat, "A piecewise quadratic silu.", "y = x * min(max(x / 6 + 0.5, 0), 1)")
    .onnx("HardSwish")
    .aten("hardswish");
ACTIVATION(thresholded_relu, kFloat, "x where it is above alpha, else 0.", "y = x <= alpha ? 0 : x")
    .onnx("ThresholdedRelu", {"alpha"})
    .attr("alpha", 1.0, "the threshold")
    .tolerance(kExact);
ACTIVATION(hardshrink, kFloat, "x, but 0 where |x| is at most alpha.", "y = |x| <= alpha ? 0 : x")
    .attr("alpha", 0.5, "the threshold")
    .tolerance(kExact);
ACTIVATION(threshold, kFloat, "x where it is above alpha, else value.",
           "y = x <= alpha ? value : x")
    .attr("alpha", 0.0, "the threshold")
    .attr("value", 0.0, "what stands in place of x at it and below");
ACTIVATION(log_sigmoid, kFloat, "The logarithm of sigmoid, right where sigmoid vanishes.",
           "y = -ln(1 + exp(-x))");

static void infer_softmax(InferContext& ctx) {
  ctx.axis("axis", 0);
  infer_same(ctx);
}

#define SOFTMAX(name, text, math)                                 \
  OP(name)                                                        \
      .doc(text)                                                  \
      .formula(math)                                              \
      .input("x", kFloat)                                         \
      .output("y")                                                \
      .attr("axis", -1, "along which the results sum to 1")       \
      .layout(LayoutRule::kAxis)                                  \
      .infer(infer_softmax)                                       \
      .domain(-20, 20)                                            \
      .sample({"vector", {{7}}, {}, {}})                          \
      .sample({"last", {{2, 3, 33}}, {{"axis", -1}}, {}})         \
      .sample({"middle", {{2, 5, 9}}, {{"axis", 1}}, {}})         \
      .sample({"first", {{6, 4}}, {{"axis", 0}}, {}})             \
      .sample({"one", {{4, 1}}, {{"axis", 1}}, {}})               \
      .sample({"image", {{1, 21, 5, 6}}, {{"axis", 1}}, {}})      \
      .sample({"attention", {{2, 4, 16, 16}}, {{"axis", 3}}, {}}) \
      .sample({"long", {{2, 5000}}, {{"axis", -1}}, {}})          \
      .sample({"empty", {{0, 5}}, {{"axis", 1}}, {}})             \
      .sample({"empty_axis", {{3, 0}}, {{"axis", 1}}, {}})

SOFTMAX(softmax, "Exponentials along an axis, scaled to sum to 1.",
        "y = exp(x - max(x)) / sum(exp(x - max(x)))")
    .onnx("Softmax", {"axis"})
    .mps("softMaxWithTensor:axis:name:");
SOFTMAX(log_softmax, "The logarithm of softmax, exact where softmax vanishes.",
        "y = x - max(x) - ln(sum(exp(x - max(x))))")
    .onnx("LogSoftmax", {"axis"});

// At a kink the gradient is that of the left side, as in PyTorch: relu'(0) is 0.

// By an op of its own, named after this one.
static void set_own_gradient(GradientContext& ctx) {
  const std::string name = ctx.op().name + "_gradient";
  ctx.set(0, ctx.add(name.c_str(), {ctx.dy(), ctx.x()}, ctx.attrs().named()));
}

GRADIENT(relu) { ctx.set(0, ctx.add("relu_gradient", {ctx.dy(), ctx.x()})); }

GRADIENT(leaky_relu) {
  ctx.set(0, where(ctx.x() > 0, ctx.dy(), ctx.dy() * ctx.attrs().f("alpha")));
}

GRADIENT(prelu) {
  const Term x = ctx.x(), dy = ctx.dy(), positive = x > 0;
  if (ctx.wants(0)) ctx.set(0, where(positive, dy, dy * ctx.x(1)));
  if (ctx.wants(1)) ctx.set(1, where(positive, 0, dy * x));
}

GRADIENT(elu) { set_own_gradient(ctx); }

GRADIENT(selu) {
  const double alpha = ctx.attrs().f("alpha"), gamma = ctx.attrs().f("gamma");
  ctx.set(0, where(ctx.x() > 0, ctx.dy() * gamma, ctx.dy() * (ctx.y() + alpha * gamma)));
}

GRADIENT(celu) {
  const double alpha = ctx.attrs().f("alpha");
  ctx.set(0, where(ctx.x() > 0, ctx.dy(), ctx.dy() * (ctx.y() / alpha + 1)));
}

GRADIENT(gelu) { set_own_gradient(ctx); }

GRADIENT(silu) { set_own_gradient(ctx); }

GRADIENT(mish) { set_own_gradient(ctx); }

GRADIENT(softplus) { set_own_gradient(ctx); }

GRADIENT(softsign) {
  const Term below = ctx.x().op("abs") + 1;
  ctx.set(0, ctx.dy() / (below * below));
}

GRADIENT(sigmoid) { ctx.set(0, ctx.add("sigmoid_result_gradient", {ctx.dy(), ctx.y()})); }

GRADIENT(hard_sigmoid) { set_own_gradient(ctx); }

GRADIENT(hard_swish) { set_own_gradient(ctx); }

static void set_threshold_gradient(GradientContext& ctx) {
  ctx.set(0,
          ctx.add("threshold_gradient", {ctx.dy(), ctx.x()}, {{"alpha", ctx.attrs().f("alpha")}}));
}

GRADIENT(thresholded_relu) { set_threshold_gradient(ctx); }

GRADIENT(hardshrink) { ctx.set(0, where(ctx.y() == 0.0, 0, ctx.dy())); }

GRADIENT(threshold) { set_threshold_gradient(ctx); }

GRADIENT(log_sigmoid) { set_own_gradient(ctx); }

GRADIENT(softmax) {
  ctx.set(0, ctx.add("softmax_result_gradient", {ctx.dy(), ctx.y()}, ctx.attrs().named()));
}

GRADIENT(log_softmax) {
  ctx.set(0, ctx.add("log_softmax_gradient", {ctx.dy(), ctx.y()}, ctx.attrs().named()));
}

}  // namespace anymps
