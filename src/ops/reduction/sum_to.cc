// SPDX-License-Identifier: Apache-2.0
// Ops that gradients are made of and that are seldom used otherwise.
#include <algorithm>

#include "ops/expect.h"
#include "ops/gradient.h"

namespace anymps {

namespace {

void infer_sum_to(InferContext& ctx) {
  const Dims &x = ctx.shape(0), &like = ctx.shape(1);
  expect_broadcast(ctx, 1, x);
  ctx.set(0, like);
}

}  // namespace

OP(sum_to)
    .doc(
        "The sum of x over the axes along which `like` would have been broadcast to x's shape: "
        "what the gradient of a broadcast is.")
    .formula("y = sum of x over leading axes and those where like has extent 1")
    .input("x", kNumber)
    .input("like", kNumber, "T", "only its shape is read")
    .output("y")
    .facts(kSums)
    .infer(infer_sum_to)
    .sample({"rows", {{3, 5}, {5}}, {}})
    .sample({"columns", {{3, 5}, {3, 1}}, {}})
    .sample({"both", {{2, 3, 5}, {3, 1}}, {}})
    .sample({"same", {{2, 3}, {2, 3}}, {}})
    .sample({"scalar", {{2, 3}, {}}, {}})
    .sample({"of scalar", {{}, {}}, {}})
    .sample({"ones", {{1, 4}, {1, 1}}, {}})
    .sample({"empty", {{0, 3}, {1, 3}}, {}})
    .sample({"empty like", {{2, 0}, {0}}, {}});

COMPLEX_GRADIENT(sum_to) { ctx.set(0, ctx.expand_like(ctx.dy(), ctx.x())); }

}  // namespace anymps
