// SPDX-License-Identifier: Apache-2.0
// Variance, and the gradients of a normalization by given statistics, over any axes. Statistics and
// parameters have extent 1 along those axes, or broadcast to x otherwise.
#include <algorithm>

#include "ops/expect.h"
#include "ops/shape_rules.h"

namespace anymps {

namespace {

// x's shape with the axes of attribute `axes` reduced to 1; no axes: all.
Dims reduced(const InferContext& ctx, size_t input) {
  Dims shape = ctx.shape(input);
  const Ints axes = normalize_axes(ctx.attrs.ints("axes"), ctx.rank(input), ctx.op.name.c_str());
  if (axes.empty()) return Dims(shape.size(), Dim(1));
  for (const int64_t axis : axes) shape[axis] = 1;
  return shape;
}

void infer_variance(InferContext& ctx) {
  expect_broadcast(ctx, 1, ctx.shape(0));
  ctx.set(0, reduced(ctx, 0));
}

void check_inputs(const InferContext& ctx) {
  const Dims& x = ctx.shape(1);
  expect_shape(ctx, 0, x);
  for (size_t i = 2; i < ctx.op.inputs.size(); ++i) expect_broadcast(ctx, i, x);
  if (ctx.op.attr_index("epsilon") >= 0)
    ctx.check(ctx.attrs.f("epsilon") >= 0, "epsilon is {}, must not be negative",
              ctx.attrs.f("epsilon"));
}

void infer_parameter(InferContext& ctx) {
  check_inputs(ctx);
  ctx.set(0, reduced(ctx, 1));
}

void infer_input(InferContext& ctx) {
  check_inputs(ctx);
  reduced(ctx, 1);
  ctx.set(0, ctx.shape(1));
}

constexpr Tolerance kNormGradientTolerance{.f32 = 5e-5, .f16 = 5e-3, .bf16 = 4e-2, .f64 = 1e-10};
const char* const kNormGradientDoc = "of the normalization's y; has x's shape";

OpWriter& given_statistics(OpWriter& op) {
  return op.input("gradient", kFloat, "T", kNormGradientDoc)
      .input("x", kFloat)
      .input("mean", kFloat, "T", "broadcasts to x")
      .input("variance", kFloat, "T", "broadcasts to x")
      .domain("variance", 0.1, 2);
}

OpWriter& over_axes(OpWriter& op) {
  return op.attr("axes", Ints{}, "empty: all").facts(kSums).tolerance(kNormGradientTolerance);
}

}  // namespace

OP(variance)
    .doc("The mean square distance from the mean, which may be given, over axes that are kept.")
    .formula("y = mean over axes of (x - mean)^2")
    .mps("varianceOfTensor:meanTensor:axes:name:")
    .mps("varianceOfTensor:axes:name:")
    .input("x", kFloat)
    .optional("mean", kFloat, "T", "broadcasts to x; absent: that of x over the axes")
    .output("y")
    .with(over_axes)
    .infer(infer_variance)
    .sample({"last", {{3, 7}}, {{"axes", Ints{-1}}}})
    .sample({"two axes", {{2, 3, 4, 5}}, {{"axes", Ints{0, 2}}}})
    .sample({"mean given", {{2, 3, 4}, {1, 3, 1}}, {{"axes", Ints{0, 2}}}})
    .sample({"all", {{2, 3}}, {}})
    .sample({"empty", {{0, 3}}, {{"axes", Ints{1}}}});

OP(norm_gamma_gradient)
    .doc("The gradient of a normalization to its scale.")
    .formula("y = sum over axes of gradient * (x - mean) / sqrt(variance + epsilon)")
    .mps(
        "normalizationGammaGradientWithIncomingGradientTensor:sourceTensor:meanTensor:"
        "varianceTensor:reductionAxes:epsilon:name:")
    .with(given_statistics)
    .output("y", "T", "x's shape with the axes reduced to 1")
    .with(over_axes)
    .attr("epsilon", 1e-5)
    .infer(infer_parameter)
    .no_layout_tests()
    .sample({"channels",
             {{2, 3, 4, 5}, {2, 3, 4, 5}, {1, 3, 1, 1}, {1, 3, 1, 1}},
             {{"axes", Ints{0, 2, 3}}}})
    .sample({"rows", {{4, 7}, {4, 7}, {4, 1}, {4, 1}}, {{"axes", Ints{0}}}})
    .sample({"empty", {{0, 7}, {0, 7}, {0, 1}, {0, 1}}, {{"axes", Ints{0}}}});

OP(norm_beta_gradient)
    .doc("The gradient of a normalization to its shift.")
    .formula("y = sum over axes of gradient")
    .mps("normalizationBetaGradientWithIncomingGradientTensor:sourceTensor:reductionAxes:name:")
    .input("gradient", kFloat, "T", kNormGradientDoc)
    .input("x", kFloat, "T", "only its shape is read")
    .output("y", "T", "x's shape with the axes reduced to 1")
    .with(over_axes)
    .infer(infer_parameter)
    .no_layout_tests()
    .sample({"channels", {{2, 3, 4, 5}, {2, 3, 4, 5}}, {{"axes", Ints{0, 2, 3}}}})
    .sample({"empty", {{0, 7}, {0, 7}}, {{"axes", Ints{0}}}});

OP(norm_gradient)
    .doc(
        "The gradient of a normalization to x, when mean and variance are those of x over the "
        "axes. The gradients to scale and shift are used if they are given, else computed.")
    .formula(
        "y = gamma / sqrt(variance + epsilon) * (gradient - (beta_gradient + normalized * "
        "gamma_gradient) / count)")
    .mps(
        "normalizationGradientWithIncomingGradientTensor:sourceTensor:meanTensor:varianceTensor:"
        "gammaTensor:gammaGradientTensor:betaGradientTensor:reductionAxes:epsilon:name:")
    .with(given_statistics)
    .optional("gamma", kFloat, "T", "broadcasts to x; absent: 1")
    .optional("gamma_gradient", kFloat, "T", "as norm_gamma_gradient gives it")
    .optional("beta_gradient", kFloat, "T", "as norm_beta_gradient gives it")
    .output("y")
    .with(over_axes)
    .attr("epsilon", 1e-5)
    .infer(infer_input)
    .no_layout_tests()
    .sample({"channels",
             {{2, 3, 4, 5}, {2, 3, 4, 5}, {1, 3, 1, 1}, {1, 3, 1, 1}, {1, 3, 1, 1}},
             {{"axes", Ints{0, 2, 3}}}})
    .sample({"all given",
             {{4, 7}, {4, 7}, {4, 1}, {4, 1}, {1, 7}, {4, 1}, {4, 1}},
             {{"axes", Ints{1}}}})
    .sample({"empty", {{0, 7}, {0, 7}, {0, 1}, {0, 1}}, {{"axes", Ints{1}}}});

}  // namespace anymps
