// SPDX-License-Identifier: Apache-2.0
// Sequences of a batch, each turned round by itself.
#include "ops/expect.h"
#include "ops/gradient.h"

namespace anymps {

namespace {

void infer_reverse_sequence(InferContext& ctx) {
  const int64_t time = ctx.axis("time_axis", 0), batch = ctx.axis("batch_axis", 0);
  ctx.check(time != batch, "time_axis and batch_axis are both {}", time);
  expect_shape(ctx, 1, {ctx.shape(0)[batch]});
  ctx.set(0, ctx.shape(0));
}

}  // namespace

OP(reverse_sequence)
    .doc("Turns round the first lengths[b] steps of each sequence b of a batch.")
    .formula("y[.., t, .., b, ..] = x[.., lengths[b] - 1 - t, .., b, ..] for t < lengths[b]")
    .input("x", kEvery)
    .input("lengths", kIndex, "I", "one for each sequence, at most the number of steps")
    .output("y")
    .attr("time_axis", 0, "the axis of steps")
    .attr("batch_axis", 1, "the axis of sequences")
    .facts(kMoves)
    .infer(infer_reverse_sequence)
    .sample({"time_first", {{4, 3, 2}, {3}}, {}, {{1, {4, 0, 2}}}})
    .sample({"batch_first", {{3, 4}, {3}}, {{"time_axis", 1}, {"batch_axis", 0}}, {{1, {1, 4, 3}}}})
    .sample({"last", {{2, 3, 5}, {2}}, {{"time_axis", -1}, {"batch_axis", 0}}, {{1, {5, 2}}}})
    .sample({"empty", {{3, 0}, {0}}, {}, {{1, {}}}});

COMPLEX_GRADIENT(reverse_sequence) {
  ctx.set(0, ctx.add("reverse_sequence", {ctx.dy(), ctx.x(1)}, ctx.attrs().named()));
}

}  // namespace anymps
