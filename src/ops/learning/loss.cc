// SPDX-License-Identifier: Apache-2.0
// Losses: softmax cross entropy against label distributions, with its gradient.
#include "ops/expect.h"
#include "ops/gradient_parts.h"

namespace anymps {

namespace {

const std::vector<std::string> kReductions = {"none", "sum", "mean"};

// One loss for each place beside the axis, which stays with extent 1; a scalar when reduced.
Dims loss_shape(InferContext& ctx, const Dims& x, int64_t axis) {
  if (ctx.attrs.s("reduction") != "none") return {};
  Dims shape = x;
  shape[axis] = 1;
  return shape;
}

void infer_cross_entropy(InferContext& ctx) {
  const int64_t axis = ctx.axis("axis", 0);
  expect_shape(ctx, 1, ctx.shape(0));
  ctx.set(0, loss_shape(ctx, ctx.shape(0), axis));
}

void infer_cross_entropy_gradient(InferContext& ctx) {
  const int64_t axis = ctx.axis("axis", 1);
  expect_shape(ctx, 2, ctx.shape(1));
  expect_shape(ctx, 0, loss_shape(ctx, ctx.shape(1), axis));
  ctx.set(0, ctx.shape(1));
}

OpWriter& classes(OpWriter& op) {
  return op.input("x", kFloat)
      .input("labels", kFloat)
      .domain("labels", 0, 1)
      .attr("axis", -1, "the axis of the classes");
}

}  // namespace

OP(softmax_cross_entropy)
    .doc(
        "The cross entropy of labels, which are a distribution along an axis, and the softmax of "
        "x. The mean is over all places beside the axis.")
    .formula("loss = -sum(labels * log_softmax(x)) along axis")
    .mps("softMaxCrossEntropyWithSourceTensor:labelsTensor:axis:reductionType:name:")
    .with(classes)
    .output("loss")
    .attr("reduction", "none", kReductions, "none: a loss for each place, the axis of extent 1")
    .infer(infer_cross_entropy)
    .sample({"vector", {{7}, {7}}, {}})
    .sample({"sum", {{3, 5}, {3, 5}}, {{"reduction", "sum"}}})
    .sample({"mean", {{3, 5, 2}, {3, 5, 2}}, {{"axis", 1}, {"reduction", "mean"}}})
    .sample({"empty", {{0, 5}, {0, 5}}, {}});

OP(softmax_cross_entropy_gradient)
    .doc("The gradient of softmax_cross_entropy with respect to x.")
    .formula("dx = dloss * (softmax(x) * sum(labels) - labels)")
    .mps(
        "softMaxCrossEntropyGradientWithIncomingGradientTensor:sourceTensor:labelsTensor:axis:"
        "reductionType:name:")
    .input("dloss", kFloat)
    .with(classes)
    .output("dx")
    .attr("reduction", "none", kReductions, "of the loss")
    .infer(infer_cross_entropy_gradient)
    .sample({"vector", {{1}, {7}, {7}}, {}})
    .sample({"sum", {{}, {3, 5}, {3, 5}}, {{"reduction", "sum"}}})
    .sample({"mean", {{}, {3, 5, 2}, {3, 5, 2}}, {{"axis", 1}, {"reduction", "mean"}}})
    .sample({"none", {{3, 1, 2}, {3, 5, 2}, {3, 5, 2}}, {{"axis", 1}}})
    .sample({"empty", {{0, 1}, {0, 5}, {0, 5}}, {}});

GRADIENT(softmax_cross_entropy) {
  const std::string& reduction = ctx.attrs().s("reduction");
  const int64_t axis = axis_of(ctx);
  const Term x = ctx.x(), labels = ctx.x(1), dy = ctx.dy();
  ctx.set(0, ctx.add("softmax_cross_entropy_gradient", {dy, x, labels},
                     {{"axis", axis}, {"reduction", reduction}}));
  const Term parts = x.op("log_softmax", {{"axis", axis}});
  Term scale = dy;
  if (reduction == "mean") {
    const Term places = ctx.sum(x, {axis});
    scale = dy / ctx.ratio(places, dy);
  }
  ctx.set(1, -parts * scale);
}

GRADIENT(softmax_cross_entropy_gradient) {
  const Term dloss = ctx.x(), x = ctx.x(1), labels = ctx.x(2);
  const int64_t given = ctx.attrs().i("axis"), axis = given < 0 ? given + x.rank() : given;
  Term scale = dloss;
  if (ctx.attrs().s("reduction") == "mean") scale = dloss / ctx.ratio(ctx.sum(x, {axis}), dloss);
  const Term s = x.op("softmax", {{"axis", axis}});
  ctx.through({scale * (s * ctx.sum(labels, {axis}) - labels)});
}

}  // namespace anymps
