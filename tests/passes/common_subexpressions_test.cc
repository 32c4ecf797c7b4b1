// SPDX-License-Identifier: Apache-2.0
#include "passes/pass_test.h"

namespace anymps::testing {

TEST(CommonSubexpressions, EqualNodesBecomeOne) {
  Graph graph;
  Value* x = graph.input("x", DType::kF32, {kN, 4});
  Value* z = graph.input("z", DType::kF32, {kN, 4});
  Value* one = graph.add("add", {x, z}, {}, "one");
  Value* two = graph.add("add", {z, x}, {}, "two");  // commutative
  Value* y = graph.add(
      "mul", {graph.add("exp", {one}, {}, "e1"), graph.add("exp", {two}, {}, "e2")}, {}, "y");
  graph.set_outputs({y});
  EXPECT_EQ(rewrite(graph, {"common_subexpressions"}), 2);
  EXPECT_EQ(nodes_of(graph), R"(
%one: f32[N, 4] = add(%x, %z)
%e1: f32[N, 4] = exp(%one)
%y: f32[N, 4] = mul(%e1, %e1)
)");
}

TEST(CommonSubexpressions, EqualSmallConstantsBecomeOne) {
  Graph graph;
  Value* x = graph.input("x", DType::kF32, {4});
  Value* a = graph.add("mul", {x, graph.scalar(DType::kF32, 3)}, {}, "a");
  Value* b = graph.add("mul", {x, graph.scalar(DType::kF32, 3)}, {}, "b");
  graph.set_outputs({graph.add("sub", {a, b}, {}, "y")});
  EXPECT_EQ(rewrite(graph, {"common_subexpressions"}), 2);
  EXPECT_EQ(nodes_of(graph), R"(
%a: f32[4] = mul(%x, %const)
%y: f32[4] = sub(%a, %a)
)");
}

TEST(CommonSubexpressions, OrderOfADifferenceMattersAndSoDoAttributes) {
  Graph graph;
  Value* x = graph.input("x", DType::kF32, {4});
  Value* z = graph.input("z", DType::kF32, {4});
  graph.set_outputs({graph.add("sub", {x, z}, {}, "a"), graph.add("sub", {z, x}, {}, "b"),
                     graph.add("div", {x, z}, {}, "c"),
                     graph.add("div", {x, z}, {{"rounding", "floor"}}, "d")});
  EXPECT_EQ(rewrite(graph, {"common_subexpressions"}), 0);
}

TEST(CommonSubexpressions, TwoOutputsKeepTheirNames) {
  Graph graph;
  Value* x = graph.input("x", DType::kF32, {4});
  graph.set_outputs({graph.add("exp", {x}, {}, "a"), graph.add("exp", {x}, {}, "b")});
  EXPECT_EQ(rewrite(graph, {"common_subexpressions"}), 0);
  EXPECT_EQ(graph.node_count(), 2u);
}

}  // namespace anymps::testing
