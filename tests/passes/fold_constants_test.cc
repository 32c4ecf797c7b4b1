// SPDX-License-Identifier: Apache-2.0
#include "passes/pass_test.h"

namespace anymps::testing {

TEST(FoldConstants, WhatDependsOnConstantsAloneIsComputed) {
  Graph graph;
  Value* x = graph.input("x", DType::kF32, {kN, 4});
  Value* scale =
      graph.add("add", {weights(graph, "w", {4}), graph.scalar(DType::kF32, 1)}, {}, "scale");
  graph.set_outputs({graph.add("mul", {x, graph.add("exp", {scale}, {}, "grown")}, {}, "y")});
  EXPECT_EQ(nodes_of(graph), R"(
%scale: f32[4] = add(%w, %const)
%grown: f32[4] = exp(%scale)
%y: f32[N, 4] = mul(%x, %grown)
)");
  EXPECT_EQ(rewrite(graph, {"fold_constants"}), 2);
  EXPECT_EQ(nodes_of(graph), R"(
%y: f32[N, 4] = mul(%x, %grown_1)
)");
}

TEST(FoldConstants, AnOutputMayBecomeAConstant) {
  Graph graph;
  graph.set_outputs({graph.add("exp", {weights(graph, "w", {4})}, {}, "y")});
  EXPECT_EQ(rewrite(graph, {"fold_constants"}), 1);
  EXPECT_EQ(graph.node_count(), 0u);
  EXPECT_TRUE(graph.outputs()[0]->is_constant());
}

TEST(FoldConstants, ShapesThatAreKnown) {
  Graph graph;
  Value* x = graph.input("x", DType::kF32, {kN, 3, 4});
  Value* known = graph.add("shape", {x}, {{"start", 1}}, "known");
  Value* batch = graph.add("shape", {x}, {{"end", 1}}, "batch");
  graph.set_outputs(
      {graph.add("add", {known, known}, {}, "y"), graph.add("neg", {batch}, {}, "z")});
  rewrite(graph, {"fold_constants"});
  EXPECT_EQ(nodes_of(graph), R"(
%batch: i64[1] = shape(%x) {end=1}
%z: i64[1] = neg(%batch)
)");
}

TEST(FoldConstants, LargeResultsOfSmallInputsStay) {
  Graph graph;
  Value* row = weights(graph, "row", {1, 1024});
  Value* column = weights(graph, "column", {1024, 1});
  graph.set_outputs({graph.add("add", {row, column}, {}, "y")});  // 4 MB from 8 KB
  EXPECT_EQ(rewrite(graph, {"fold_constants"}), 0);
}

// An LSTM packs its weights, if they are constants: 2 MB from 512 KB are worth it.
TEST(FoldConstants, QuantizedWeightsOfRecurrentLayers) {
  const auto nodes = [](bool recurrent) {
    Graph graph;
    Value* x = graph.input("x", DType::kF32, {2, 1, 512});
    Value* q = graph.constant(
        Constant::of<int8_t>({1, 512, 1024}, std::vector<int8_t>(512 * 1024, 1)), "q");
    Value* w = graph.add("dequantize", {q, graph.scalar(DType::kF32, 0.5)});
    w = graph.add("transpose", {w}, {{"perm", std::vector<int64_t>{0, 2, 1}}});
    Value* y = recurrent ? graph.add("lstm", {x, w, weights(graph, "r", {1, 1024, 256})},
                                     {{"hidden_size", 256}})
                         : graph.add("matmul", {x, w}, {{"transpose_b", true}});
    graph.set_outputs({y});
    rewrite(graph, {"fold_constants"});
    return graph.node_count();
  };
  EXPECT_EQ(nodes(true), 1u);
  EXPECT_EQ(nodes(false), 3u);
}

}  // namespace anymps::testing
