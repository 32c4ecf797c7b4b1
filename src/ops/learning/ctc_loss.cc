// SPDX-License-Identifier: Apache-2.0
// The loss of connectionist temporal classification, and its gradient.
#include "ops/expect.h"
#include "ops/gradient.h"

namespace anymps {

namespace {

// Inputs from `first` on are log_probs, targets and the two lengths.
void check_ctc(InferContext& ctx, size_t first) {
  expect_rank(ctx, first, 3, 3);
  expect_rank(ctx, first + 1, 1, 2);
  const Dims &probs = ctx.shape(first), &targets = ctx.shape(first + 1);
  if (targets.size() == 2)
    ctx.check(may_equal(targets[0], probs[1]), "targets have shape {}, there are {} sequences",
              to_string(targets), probs[1].str());
  expect_shape(ctx, first + 2, {probs[1]});
  expect_shape(ctx, first + 3, {probs[1]});
  const int64_t blank = ctx.attrs.i("blank");
  ctx.check(blank >= 0 && (!probs[2].known() || blank < probs[2].value()),
            "blank is {}, there are {} classes", blank, probs[2].str());
}

OpWriter& ctc_inputs(OpWriter& op) {
  return op.input("log_probs", kFloat, "T", "[frames, sequences, classes], logarithms")
      .input("targets", kIndex, "I",
             "[sequences, labels], or the labels of all one after the other")
      .input("input_lengths", kIndex, "L", "[sequences]: how many frames count")
      .input("target_lengths", kIndex, "L", "[sequences]: how many labels")
      .attr("blank", 0, "the class that stands for no label")
      .attr("zero_infinity", false, "targets that are too long have the loss 0 and no gradient");
}

}  // namespace

OP(ctc_loss)
    .doc(
        "The negative logarithm of the probability that frames spell the targets, where each label "
        "may take several frames, blanks may stand between labels and must between equal ones; inf "
        "where there are too few frames.")
    .formula("loss[n] = -ln(sum over spellings of prod over t of p[t, n, spelling[t]])")
    .with(ctc_inputs)
    .output("loss", "T", "[sequences]")
    .infer([](InferContext& ctx) {
      check_ctc(ctx, 0);
      ctx.set(0, {ctx.shape(0)[1]});
    })
    .domain("log_probs", -3, -0.1)
    .tolerance({.f32 = 2e-5, .f16 = 4e-3, .bf16 = 3e-2, .f64 = 1e-10})
    .sample({"padded",
             {{6, 2, 4}, {2, 3}, {2}, {2}},
             {},
             {{1, {1, 2, 2, 3, 1, 0}}, {2, {6, 4}}, {3, {3, 2}}}})
    .sample({"joined",
             {{6, 2, 4}, {5}, {2}, {2}},
             {{"blank", 3}},
             {{1, {1, 2, 2, 0, 1}}, {2, {6, 5}}, {3, {3, 2}}}})
    .sample({"no labels", {{3, 1, 3}, {1, 0}, {1}, {1}}, {}, {{1, {}}, {2, {2}}, {3, {0}}}})
    .sample({"too long",
             {{2, 2, 3}, {2, 3}, {2}, {2}},
             {{"zero_infinity", true}},
             {{1, {1, 2, 1, 1, 2, 0}}, {2, {2, 2}}, {3, {3, 1}}}})
    .sample({"empty", {{3, 0, 3}, {0, 2}, {0}, {0}}, {}, {{1, {}}, {2, {}}, {3, {}}}});

OP(ctc_loss_gradient)
    .doc(
        "The gradient of ctc_loss with respect to log_probs. With through_softmax the probability "
        "itself is added at frames that count: what the gradient of log_softmax takes away again, "
        "so that behind one both forms are the same.")
    .formula("dx[t, n, c] = -dloss[n] * (part of the spellings that have class c at frame t)")
    .input("dloss", kFloat, "T", "[sequences]")
    .with(ctc_inputs)
    .output("dx")
    .attr("through_softmax", false)
    .infer([](InferContext& ctx) {
      check_ctc(ctx, 1);
      expect_shape(ctx, 0, {ctx.shape(1)[1]});
      ctx.set(0, ctx.shape(1));
    })
    .domain("log_probs", -3, -0.1)
    .tolerance({.f32 = 2e-5, .f16 = 4e-3, .bf16 = 3e-2, .f64 = 1e-10})
    .sample({"padded",
             {{2}, {6, 2, 4}, {2, 3}, {2}, {2}},
             {},
             {{2, {1, 2, 2, 3, 1, 0}}, {3, {6, 4}}, {4, {3, 2}}}})
    .sample({"softmax",
             {{2}, {6, 2, 4}, {5}, {2}, {2}},
             {{"blank", 3}, {"through_softmax", true}},
             {{2, {1, 2, 2, 0, 1}}, {3, {6, 5}}, {4, {3, 2}}}})
    .sample({"too long",
             {{2}, {2, 2, 3}, {2, 3}, {2}, {2}},
             {{"zero_infinity", true}},
             {{2, {1, 2, 1, 1, 2, 0}}, {3, {2, 2}}, {4, {3, 1}}}});

GRADIENT(ctc_loss) {
  ctx.set(0, ctx.add("ctc_loss_gradient", {ctx.dy(), ctx.x(0), ctx.x(1), ctx.x(2), ctx.x(3)},
                     {{"blank", ctx.attrs().i("blank")},
                      {"zero_infinity", ctx.attrs().b("zero_infinity")}}));
}

NO_GRADIENT(ctc_loss_gradient, "the loss has no second gradient");

}  // namespace anymps
