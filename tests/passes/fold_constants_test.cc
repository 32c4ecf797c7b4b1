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

// Folds with results that nobody computes: what is stored, in bytes.
size_t folded_bytes(Graph& graph) {
  PassContext context = fusing();
  context.evaluate = [](const Node& node) {
    const Value* y = node.output();
    return std::vector{Constant::lazy(y->dtype(), to_shape(y->shape()), [](std::byte*) {
      ADD_FAILURE() << "a constant was computed";
    })};
  };
  for (const Pass& pass : all_passes())
    if (pass.name == "fold_constants") pass.run(graph, context);
  size_t bytes = 0;
  for (const Value* value : graph.values())
    if (value->is_constant() && !value->users.empty()) bytes += value->constant->bytes();
  return bytes;
}

// Each step is only twice as large as what it is made from, and so a thousand bytes would become
// gigabytes.
TEST(FoldConstants, WhatIsStoredInAllIsBounded) {
  Graph graph;
  Value* y = weights(graph, "w", {256});
  for (int i = 0; i < 24; ++i)
    y = graph.add("concat", {y, graph.add("neg", {y})}, {{"axis", 0}}, "y");
  graph.set_outputs({graph.add("reduce_sum", {y}, {{"axes", Ints{0}}}, "sum")});
  const size_t bytes = folded_bytes(graph);
  EXPECT_GT(bytes, size_t{1} << 20);
  EXPECT_LE(bytes, size_t{65} << 20);
}

// Weights may change their type and order, however large they are.
TEST(FoldConstants, LargeWeightsAreStored) {
  Graph graph;
  const auto none = [](std::byte*) {};
  Value* w = graph.constant(Constant::lazy(DType::kF16, {1 << 14, 1 << 12}, none), "w");  // 128 MB
  w = graph.add("cast", {w}, {{"dtype", DType::kF32}});
  Value* x = graph.input("x", DType::kF32, {1, 1 << 14});
  graph.set_outputs({graph.add("matmul", {x, graph.add("exp", {w})}, {}, "y")});
  EXPECT_EQ(folded_bytes(graph), size_t{256} << 20);
}

// A count that is measured is worth storing, but not 14 GB of numbers.
TEST(FoldConstants, LongCountsStay) {
  const auto number = [](Graph& graph, int64_t value) {
    return graph.constant(Constant::of<int64_t>({}, {value}));
  };
  for (const int64_t count : {1 << 20, 1'800'000'000}) {
    Graph graph;
    Value* y =
        graph.add("range", {number(graph, 0), number(graph, count), number(graph, 1)}, {}, "y");
    graph.set_outputs({graph.add("neg", {graph.add("neg", {y})}, {}, "z")});
    folded_bytes(graph);
    EXPECT_EQ(graph.node_count(), count == 1 << 20 ? 0u : 3u) << count;
  }
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
