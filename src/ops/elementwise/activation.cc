// SPDX-License-Identifier: Apache-2.0
// Activation functions of neural networks, and softmax, which is one along an axis.
#include "ops/elementwise/elementwise_infer.h"

namespace anymps {

#define ACTIVATION(name, dtypes, text, math) \
  OP(name)                                   \
      .doc(text)                             \
      .formula(math)                         \
      .input("x", dtypes)                    \
      .output("y")                           \
      .facts(kElementwise)                   \
      .infer(infer_elementwise)              \
      .domain(-6, 6)

ACTIVATION(relu, kReal, "x where it is positive, else 0.", "y = max(x, 0)")
    .mps("reLUWithTensor:name:")
    .facts(kNoRounding)
    .tolerance({.f32 = 0, .f16 = 0, .bf16 = 0, .f64 = 0});
ACTIVATION(leaky_relu, kFloat, "Relu with a slope for negative x.", "y = x < 0 ? alpha * x : x")
    .mps("leakyReLUWithTensor:alpha:name:")
    .attr("alpha", 0.01, "slope below 0");
OP(prelu)
    .doc("Leaky relu whose slope is a tensor that broadcasts with x.")
    .formula("y = x < 0 ? slope * x : x")
    .mps("leakyReLUWithTensor:alphaTensor:name:")
    .input("x", kFloat)
    .input("slope", kFloat)
    .output("y")
    .facts(kElementwise)
    .infer(infer_elementwise);
ACTIVATION(elu, kFloat, "Exponential linear unit.", "y = x < 0 ? alpha * (exp(x) - 1) : x")
    .attr("alpha", 1.0, "minus the limit for very negative x");
ACTIVATION(selu, kFloat, "Scaled exponential linear unit.",
           "y = gamma * (x < 0 ? alpha * (exp(x) - 1) : x)")
    .attr("alpha", 1.67326319217681884765625, "scale below 0")
    .attr("gamma", 1.05070102214813232421875, "scale of all");
ACTIVATION(celu, kFloat, "Continuously differentiable elu.",
           "y = max(x, 0) + min(0, alpha * (exp(x / alpha) - 1))")
    .attr("alpha", 1.0, "minus the limit for very negative x");
ACTIVATION(gelu, kFloat, "Gaussian error linear unit.",
           "none: y = x / 2 * (1 + erf(x / sqrt(2))); "
           "tanh: y = x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3)))")
    .attr("approximate", "none", {"none", "tanh"}, "which of the two formulas");
ACTIVATION(silu, kFloat, "x times its sigmoid; also called swish.", "y = x / (1 + exp(-x))");
ACTIVATION(mish, kFloat, "x times the tanh of its softplus.", "y = x * tanh(ln(1 + exp(x)))");
ACTIVATION(softplus, kFloat, "A smooth relu.", "y = ln(1 + exp(x))");
ACTIVATION(softsign, kFloat, "A slow sigmoid in (-1, 1).", "y = x / (1 + |x|)");
ACTIVATION(sigmoid, kFloat, "The logistic function.", "y = 1 / (1 + exp(-x))")
    .mps("sigmoidWithTensor:name:");
ACTIVATION(hard_sigmoid, kFloat, "A piecewise linear sigmoid.",
           "y = min(max(alpha * x + beta, 0), 1)")
    .attr("alpha", 0.2, "slope")
    .attr("beta", 0.5, "value at 0");
ACTIVATION(hard_swish, kFloat, "A piecewise quadratic silu.",
           "y = x * min(max(x / 6 + 0.5, 0), 1)");
ACTIVATION(thresholded_relu, kFloat, "x where it is above alpha, else 0.", "y = x <= alpha ? 0 : x")
    .attr("alpha", 1.0, "the threshold")
    .tolerance({.f32 = 0, .f16 = 0, .bf16 = 0, .f64 = 0});

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
    .mps("softMaxWithTensor:axis:name:");
SOFTMAX(log_softmax, "The logarithm of softmax, exact where softmax vanishes.",
        "y = x - max(x) - ln(sum(exp(x - max(x))))");

}  // namespace anymps
