// SPDX-License-Identifier: Apache-2.0
#include "passes/pass_test.h"

namespace anymps::testing {

namespace {

Value* normed(Graph& graph, Value* x, int64_t channels, const NamedAttrs& attrs) {
  Value* deviations = weights(graph, "d", {channels});
  Value* variance = graph.add("mul", {deviations, deviations}, {}, "variance");
  return graph.add("batch_norm",
                   {x, weights(graph, "mean", {channels}), variance,
                    weights(graph, "g", {channels}), weights(graph, "b", {channels})},
                   attrs, "y");
}

TEST(ExpandBatchNorm, OfConstants) {
  for (const int64_t axis : {1, -1}) {
    Graph graph;
    Value* x = graph.input("x", DType::kF32, {kN, 4, 7, 4});
    graph.set_outputs({normed(graph, x, 4, {{"axis", axis}})});
    rewrite(graph, {"fold_constants", "expand_batch_norm"});
    EXPECT_EQ(count(graph, "batch_norm"), 0) << to_text(graph);
    EXPECT_EQ(count(graph, "mul") + count(graph, "add"), 2) << to_text(graph);
  }
}

TEST(ExpandBatchNorm, OfStatisticsThatComeWithTheRunStays) {
  Graph graph;
  Value* x = graph.input("x", DType::kF32, {kN, 4, 7});
  Value* mean = graph.input("mean", DType::kF32, {4});
  graph.set_outputs({graph.add("batch_norm", {x, mean, weights(graph, "one", {4})}, {}, "y")});
  EXPECT_EQ(rewrite(graph, {"expand_batch_norm"}), 0);
}

}  // namespace

}  // namespace anymps::testing
