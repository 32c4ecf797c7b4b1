// SPDX-License-Identifier: Apache-2.0
// Ops of classical machine learning that are not formulas over tensors: decision trees.
#include "ops/expect.h"
#include "ops/gradient.h"

namespace anymps {

namespace {

void infer_tree_ensemble(InferContext& ctx) {
  expect_rank(ctx, 0, 2, 2);
  for (size_t i = 2; i < 7; ++i) expect_rank(ctx, i, 1, 1);
  expect_rank(ctx, 1, 2, 2);
  const Dim nodes = known_of(ctx.shape(1)[0], ctx.shape(2)[0]);
  expect_shape(ctx, 1, {nodes, 5});
  expect_shape(ctx, 2, {nodes});
  const Dim pairs = known_of(ctx.shape(5)[0], ctx.shape(6)[0]);
  expect_shape(ctx, 5, {pairs});
  expect_shape(ctx, 6, {pairs});
  ctx.check(!ctx.shape(4)[0].is(0), "leaves must end with the number of targets");
  const int64_t targets = ctx.attrs.i("targets");
  ctx.check(targets >= 1, "targets is {}, must be at least 1", targets);
  ctx.set(0, {ctx.shape(0)[0], targets});
}

void infer_pair_coupling(InferContext& ctx) {
  const int64_t classes = ctx.attrs.i("classes");
  ctx.check(classes >= 2 && classes <= 65535, "classes is {}, must be 2 to 65535", classes);
  expect_rank(ctx, 0, 2, 2);
  expect_shape(ctx, 0, {ctx.shape(0)[0], classes * (classes - 1) / 2});
  ctx.set(0, {ctx.shape(0)[0], classes});
}

// Node 0: x[0] <= split ? node 1 : leaf 0. Node 1: x[2] > split ? leaf 1 : leaf 2. Leaf 2 has two
// targets, and there is a tree that is leaf 0 alone.
std::vector<std::pair<int, Ints>> trees(const Ints& roots) {
  return {{1, {0, 0, 1, -1, 0, 2, 3, -2, -3, 1}}, {3, roots}, {4, {0, 1, 2, 4}}, {5, {0, 1, 0, 1}}};
}

}  // namespace

OP(tree_ensemble)
    .doc(
        "Decision trees over the rows of x. A node is five numbers: the feature it looks at, how "
        "(0: <=, 1: <, 2: >=, 3: >, 4: ==, 5: != the node's split), where to go if so, where else "
        "(a node, or -1 - leaf), and whether a NaN counts as yes. A leaf holds the pairs of "
        "target and weight from leaves[l] to leaves[l + 1]; the weights that the trees give to a "
        "target are put together. A target that no tree speaks of is 0.")
    .formula("y[n, t] = sum over the trees of the weights for t in the leaf that x[n] reaches")
    .input("x", kReal, "X", "[N, F]")
    .input("nodes", bit(DType::kI64), "I", "[n, 5]")
    .input("splits", bit(DType::kF32) | bit(DType::kF64), "W", "[n]")
    .input("roots", bit(DType::kI64), "I", "of each tree: a node, or -1 - leaf")
    .input("leaves", bit(DType::kI64), "I", "[leaves + 1]: where the pairs of each leaf begin")
    .input("pair_targets", bit(DType::kI64), "I", "[pairs]")
    .input("weights", bit(DType::kF32) | bit(DType::kF64), "W", "[pairs]")
    .output("y", "W", "[N, targets]")
    .required("targets", AttrKind::kInt, "how many targets there are")
    .attr("aggregate", "sum", {"sum", "average", "min", "max"},
          "how the weights for a target are put together; average: over the trees")
    .infer(infer_tree_ensemble)
    .sample(
        {"two trees", {{7, 3}, {2, 5}, {2}, {2}, {4}, {4}, {4}}, {{"targets", 2}}, trees({0, -1})})
    .sample({"average",
             {{5, 3}, {2, 5}, {2}, {2}, {4}, {4}, {4}},
             {{"targets", 3}, {"aggregate", "average"}},
             trees({0, 1})})
    .sample({"max",
             {{5, 3}, {2, 5}, {2}, {2}, {4}, {4}, {4}},
             {{"targets", 2}, {"aggregate", "max"}},
             trees({0, -1})})
    .sample({"min",
             {{5, 3}, {2, 5}, {2}, {2}, {4}, {4}, {4}},
             {{"targets", 2}, {"aggregate", "min"}},
             trees({0, 0})})
    .sample({"no rows", {{0, 3}, {2, 5}, {2}, {1}, {4}, {4}, {4}}, {{"targets", 2}}, trees({0})});

OP(pair_coupling)
    .doc(
        "Probabilities of classes from those of each two of them: p holds that of class i against "
        "class j for (0, 1), (0, 2), …, (1, 2), …. The second method of Wu, Lin and Weng, iterated "
        "as LIBSVM does: until the error is below 0.005 / classes, or max(100, classes) rounds.")
    .formula("y minimises the sum over i < j of (r[j, i] * y[i] - r[i, j] * y[j])^2, sum(y) = 1")
    .input("p", bit(DType::kF32) | bit(DType::kF64), "T",
           "[N, classes * (classes - 1) / 2], inside (0, 1)")
    .output("y", "T", "[N, classes]")
    .required("classes", AttrKind::kInt, "how many classes there are")
    .reference_only("a few numbers a row, each from all others")
    .infer(infer_pair_coupling)
    .domain(0.05, 0.95)
    .tolerance({.f32 = 1e-5})
    .sample({"two", {{5, 1}}, {{"classes", 2}}})
    .sample({"four", {{3, 6}}, {{"classes", 4}}})
    .sample({"no rows", {{0, 3}}, {{"classes", 3}}});

NO_GRADIENT(pair_coupling, "an iteration makes it");
NO_GRADIENT(tree_ensemble, "trees are made of steps, and their leaves are not trained here");

}  // namespace anymps
