// SPDX-License-Identifier: Apache-2.0
#include "passes/pass_test.h"

namespace anymps::testing {

TEST(DeadCode, RemovesWhatNoOutputNeeds) {
  Graph graph;
  Value* x = graph.input("x", DType::kF32, {kN, 4});
  Value* y = graph.add("exp", {x}, {}, "y");
  graph.add("add", {graph.add("sqrt", {x}, {}, "unused"), weights(graph, "w", {4})}, {},
            "unused_too");
  graph.set_outputs({y});
  EXPECT_EQ(nodes_of(graph), R"(
%y: f32[N, 4] = exp(%x)
%unused: f32[N, 4] = sqrt(%x)
%unused_too: f32[N, 4] = add(%unused, %w)
)");
  EXPECT_EQ(rewrite(graph, {"dead_code"}), 2);
  EXPECT_EQ(nodes_of(graph), R"(
%y: f32[N, 4] = exp(%x)
)");
  EXPECT_EQ(graph.find_value("w"), nullptr);
}

TEST(DeadCode, RemovesOutputsThatNobodyReads) {
  Graph graph;
  Value* x = graph.input("x", DType::kF32, {kN, 3, 4, 4});
  Node* pool = graph.add_node(get_op("max_pool"), {x}, {{"kernel", Ints{2, 2}}}, "pool", 2);
  graph.set_outputs({graph.add("neg", {pool->outputs[0]}, {}, "y")});
  EXPECT_EQ(rewrite(graph, {"dead_code"}), 1);
  EXPECT_EQ(nodes_of(graph), R"(
%pool: f32[N, 3, 3, 3] = max_pool(%x) {kernel=[2, 2]}
%y: f32[N, 3, 3, 3] = neg(%pool)
)");
}

}  // namespace anymps::testing
