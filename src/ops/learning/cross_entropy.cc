// SPDX-License-Identifier: Apache-2.0
// Losses against labels that are numbers of classes: of log-probabilities (nll_loss) and of scores
// (cross_entropy), with weights of classes and labels that do not count, and their gradients.
#include "ops/expect.h"
#include "ops/gradient.h"

namespace anymps {

namespace {

const std::vector<std::string> kLossReductions = {"none", "sum", "mean"};
const char* const kScoresDoc = "[N, C], [N, C, …] or [C]";
const char* const kTargetDoc = "classes; x's shape without the axis of the classes";

DType total_dtype(DType x) { return x == DType::kF64 ? DType::kF64 : DType::kF32; }

// x's shape without the axis of the classes.
Dims target_shape(const InferContext& ctx, size_t x) {
  Dims shape = ctx.shape(x);
  ctx.check(!shape.empty(), "input '{}' is a scalar, must have an axis of classes",
            ctx.op.inputs[x].name);
  shape.erase(shape.begin() + (shape.size() == 1 ? 0 : 1));
  return shape;
}

Dim classes_of(const Dims& x) { return x[x.size() == 1 ? 0 : 1]; }

void check_smoothing(const InferContext& ctx) {
  if (ctx.op.attr_index("label_smoothing") < 0) return;
  const double smoothing = ctx.attrs.f("label_smoothing");
  ctx.check(smoothing >= 0 && smoothing <= 1, "label_smoothing is {}, must be 0 to 1", smoothing);
}

void infer_class_loss(InferContext& ctx) {
  check_smoothing(ctx);
  if (!ctx.type(0).ranked) {
    ctx.set_unranked(0);
    if (ctx.output_count() > 1) ctx.set(1, total_dtype(ctx.dtype(0)), {});
    return;
  }
  const Dims target = target_shape(ctx, 0);
  expect_shape(ctx, 1, target);
  expect_shape(ctx, 2, {classes_of(ctx.shape(0))});
  ctx.set(0, ctx.attrs.s("reduction") == "none" ? target : Dims{});
  if (ctx.output_count() > 1) ctx.set(1, total_dtype(ctx.dtype(0)), {});
}

void infer_class_loss_gradient(InferContext& ctx) {
  check_smoothing(ctx);
  const Dims target = target_shape(ctx, 1);
  expect_shape(ctx, 0, ctx.attrs.s("reduction") == "none" ? target : Dims{});
  expect_shape(ctx, 2, target);
  expect_shape(ctx, 3, {classes_of(ctx.shape(1))});
  expect_one_element(ctx, 4);
  ctx.check(ctx.attrs.s("reduction") != "mean" || ctx.has(4),
            "the gradient of a mean needs total_weight");
  ctx.set(0, ctx.shape(1));
}

OpWriter& class_loss(OpWriter& op) {
  return op.input("x", kFloat, "T", kScoresDoc)
      .input("target", kIndex, "I", kTargetDoc)
      .optional("weight", kFloat, "T", "[C]; absent: 1")
      .output("loss")
      .by_product("total_weight", "f32", "the sum of the weights of all labels that count")
      .attr("reduction", "mean", kLossReductions,
            "none: a loss for each label; mean: the sum over total_weight")
      .attr("ignore_index", -100, "a label that does not count")
      .infer(infer_class_loss)
      .domain("weight", 0.2, 2)
      .sample({"rows", {{4, 5}, {4}}, {}, {{1, {1, 0, 4, 2}}}})
      .sample({"weights", {{4, 5}, {4}, {5}}, {{"reduction", "sum"}}, {{1, {1, 0, 4, 2}}}})
      .sample({"ignored",
               {{4, 3}, {4}, {3}},
               {{"ignore_index", 7}, {"reduction", "mean"}},
               {{1, {1, 7, 0, 7}}}})
      .sample({"none",
               {{2, 3, 2, 2}, {2, 2, 2}, {3}},
               {{"reduction", "none"}, {"ignore_index", -1}},
               {{1, {0, 1, 2, -1, 2, 2, 1, 0}}}})
      .sample({"image", {{1, 4, 3, 3}, {1, 3, 3}}, {}, {{1, {0, 1, 2, 3, 3, 2, 1, 0, 2}}}})
      .sample({"one", {{6}, {}}, {}, {{1, {3}}}})
      .sample({"all ignored", {{2, 3}, {2}}, {}, {{1, {-100, -100}}}})
      .sample({"empty", {{0, 5}, {0}}, {{"reduction", "sum"}}, {{1, {}}}});
}

OpWriter& class_loss_gradient(OpWriter& op) {
  return op.input("dloss", kFloat)
      .input("x", kFloat, "T", kScoresDoc)
      .input("target", kIndex, "I", kTargetDoc)
      .optional("weight", kFloat, "T", "[C]; absent: 1")
      .optional("total_weight", kFloat, "S", "as the loss gave it; needed for a mean")
      .output("dx")
      .attr("reduction", "mean", kLossReductions, "of the loss")
      .attr("ignore_index", -100, "a label that does not count")
      .infer(infer_class_loss_gradient)
      .domain("weight", 0.2, 2)
      .domain("total_weight", 1, 4)
      .sample({"rows", {{}, {4, 5}, {4}, {-1}, {}}, {}, {{2, {1, 0, 4, 2}}}})
      .sample({"weights", {{}, {4, 5}, {4}, {5}}, {{"reduction", "sum"}}, {{2, {1, 0, 4, 2}}}})
      .sample({"sum", {{}, {4, 5}, {4}}, {{"reduction", "sum"}}, {{2, {1, 0, 4, 2}}}})
      .sample({"ignored",
               {{}, {4, 3}, {4}, {3}, {}},
               {{"ignore_index", 7}, {"reduction", "mean"}},
               {{2, {1, 7, 0, 7}}}})
      .sample({"none",
               {{2, 2, 2}, {2, 3, 2, 2}, {2, 2, 2}, {3}},
               {{"reduction", "none"}, {"ignore_index", -1}},
               {{2, {0, 1, 2, -1, 2, 2, 1, 0}}}})
      .sample({"image",
               {{}, {1, 4, 3, 3}, {1, 3, 3}},
               {{"reduction", "sum"}},
               {{2, {0, 1, 2, 3, 3, 2, 1, 0, 2}}}})
      .sample({"one", {{}, {6}, {}}, {{"reduction", "sum"}}, {{2, {3}}}})
      .sample({"empty", {{}, {0, 5}, {0}}, {{"reduction", "sum"}}, {{2, {}}}});
}

const char* const kSmoothingDoc = "how much of each label goes to all classes alike";

void refuse_weights(GradientContext& ctx, size_t weight) {
  if (ctx.has(weight) && ctx.wants(weight)) ctx.refuse("the weights of classes are not trained");
}

void class_loss_rule(GradientContext& ctx, const char* op) {
  refuse_weights(ctx, 2);
  const bool mean = ctx.attrs().s("reduction") == "mean";
  std::vector<Term> inputs{ctx.dy(), ctx.x(0), ctx.x(1), ctx.has(2) ? ctx.x(2) : Term(), Term()};
  if (mean && ctx.output_count() > 1)
    inputs[4] = ctx.y(1);
  else if (mean)  // it was not asked for
    inputs[4] = ctx.add_all(ctx.op().name.c_str(), {inputs[1], inputs[2], inputs[3]},
                            ctx.attrs().named(), 2)[1];
  ctx.set(0, ctx.add(op, inputs, ctx.attrs().named()));
}

}  // namespace

OP(nll_loss)
    .doc(
        "The negative log-likelihood of labels, from log-probabilities of classes. NaN for a mean "
        "of nothing.")
    .formula("loss = -weight[target] * x[target]; total_weight = sum(weight[target])")
    .with(class_loss);

OP(nll_loss_gradient)
    .doc("The gradient of nll_loss to x, of which only the shape is read.")
    .formula("dx[target] = -weight[target] * dloss, over total_weight for a mean; else 0")
    .with(class_loss_gradient);

OP(cross_entropy)
    .doc(
        "The cross entropy of labels and the softmax of scores x. With smoothing, a part of each "
        "label is spread over all classes. NaN for a mean of nothing.")
    .formula(
        "loss = -sum(q * log_softmax(x)), q = weight * ((1 - smoothing) * onehot(target) + "
        "smoothing / C); total_weight = sum(weight[target])")
    .with(class_loss)
    .attr("label_smoothing", 0.0, kSmoothingDoc)
    .sample({"smoothing",
             {{3, 300}, {3}, {300}},
             {{"label_smoothing", 0.1}, {"ignore_index", 5}},
             {{1, {299, 5, 4}}}});

OP(cross_entropy_gradient)
    .doc("The gradient of cross_entropy to x.")
    .formula("dx = dloss * (softmax(x) * sum(q) - q), over total_weight for a mean")
    .with(class_loss_gradient)
    .attr("label_smoothing", 0.0, kSmoothingDoc)
    .sample({"smoothing",
             {{}, {3, 300}, {3}, {300}, {}},
             {{"label_smoothing", 0.1}, {"ignore_index", 5}},
             {{2, {299, 5, 4}}}});

GRADIENT(nll_loss) { class_loss_rule(ctx, "nll_loss_gradient"); }
GRADIENT(cross_entropy) { class_loss_rule(ctx, "cross_entropy_gradient"); }

// dx is linear in dloss, and the loss of another gradient is the way back.
GRADIENT(nll_loss_gradient) {
  refuse_weights(ctx, 3);
  if (ctx.has(4) && ctx.wants(4))
    ctx.refuse("total_weight is a sum of weights, which are not trained");
  const Term weight = ctx.has(3) ? ctx.x(3) : Term();
  ctx.set(0, ctx.add("nll_loss", {ctx.dy(), ctx.x(2), weight}, ctx.attrs().named()));
  ctx.set(1, ctx.fill_like(ctx.x(1), 0));
}

NO_GRADIENT(cross_entropy_gradient,
            "a second derivative: write the loss as nll_loss of log_softmax");

}  // namespace anymps
