// SPDX-License-Identifier: Apache-2.0
// Gradients of softmax and log_softmax from their results, which is what frameworks keep.
// softmax_gradient, beside the activations, is the one from x.
#include "ops/expect.h"
#include "ops/gradient.h"

namespace anymps {

namespace {

void infer_result_gradient(InferContext& ctx) {
  ctx.axis("axis", 1);
  expect_shape(ctx, 0, ctx.shape(1));
  ctx.set(0, ctx.shape(1));
}

int64_t axis_from_front(GradientContext& ctx) {
  const int64_t axis = ctx.attrs().i("axis");
  return axis < 0 ? axis + ctx.x(1).rank() : axis;
}

}  // namespace

#define SOFTMAX_RESULT_GRADIENT(name, text, math)                \
  OP(name)                                                       \
      .doc(text)                                                 \
      .formula(math)                                             \
      .input("dy", kFloat)                                       \
      .input("y", kFloat, "T", "the result")                     \
      .output("dx")                                              \
      .attr("axis", -1, "the axis of the softmax")               \
      .facts(kSums)                                              \
      .infer(infer_result_gradient)                              \
      .sample({"vector", {{7}, {7}}, {}})                        \
      .sample({"last", {{2, 3, 33}, {2, 3, 33}}, {}})            \
      .sample({"middle", {{2, 5, 9}, {2, 5, 9}}, {{"axis", 1}}}) \
      .sample({"first", {{6, 300}, {6, 300}}, {{"axis", 0}}})    \
      .sample({"one", {{4, 1}, {4, 1}}, {{"axis", 1}}})          \
      .sample({"long", {{2, 2500}, {2, 2500}}, {{"axis", -1}}})  \
      .sample({"empty", {{0, 5}, {0, 5}}, {}})                   \
      .sample({"empty_axis", {{3, 0}, {3, 0}}, {}})

SOFTMAX_RESULT_GRADIENT(softmax_result_gradient,
                        "The gradient of softmax along an axis, from its result.",
                        "dx = y * (dy - sum(dy * y))")
    .domain("y", 0, 0.5);
SOFTMAX_RESULT_GRADIENT(log_softmax_gradient,
                        "The gradient of log_softmax along an axis, from its result.",
                        "dx = dy - exp(y) * sum(dy)")
    .domain("y", -6, 0);

GRADIENT(softmax_result_gradient) {
  const Term dy = ctx.x(0), y = ctx.x(1);
  ctx.through({y * (dy - ctx.sum(dy * y, {axis_from_front(ctx)}))});
}

GRADIENT(log_softmax_gradient) {
  const Term dy = ctx.x(0);
  ctx.through({dy - ctx.x(1).op("exp") * ctx.sum(dy, {axis_from_front(ctx)})});
}

}  // namespace anymps
