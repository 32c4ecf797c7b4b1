// SPDX-License-Identifier: Apache-2.0
#include "passes/pass_test.h"

namespace anymps::testing {

TEST(FuseElementwise, AChainBecomesAProgram) {
  Graph graph;
  Value* x = graph.input("x", DType::kF32, {kN, 4, 3});
  Value* y = graph.add("mul", {x, weights(graph, "scale", {4, 1})}, {}, "scaled");
  y = graph.add("add", {y, graph.scalar(DType::kF32, 0.5)}, {}, "shifted");
  graph.set_outputs({graph.add("leaky_relu", {y}, {{"alpha", 0.25}}, "y")});
  EXPECT_EQ(nodes_of(graph), R"(
%scaled: f32[N, 4, 3] = mul(%x, %scale)
%shifted: f32[N, 4, 3] = add(%scaled, %const)
%y: f32[N, 4, 3] = leaky_relu(%shifted) {alpha=0.25}
)");
  EXPECT_EQ(rewrite(graph, {"fuse_elementwise"}, fusing(), 0), 1);
  EXPECT_EQ(nodes_of(graph), R"~(
%y: f32[N, 4, 3] = fused_elementwise(%x, %scale) {program="t0=mul(x0,x1); t1=add(t0,0.5); y=leaky_relu(t1;alpha=0.25)"}
)~");
}

TEST(FuseElementwise, ADiamondIsOneProgram) {
  Graph graph;
  Value* x = graph.input("x", DType::kF32, {kN, 4});
  Value* e = graph.add("exp", {x}, {}, "e");
  Value* y = graph.add("div", {e, graph.add("add", {e, graph.scalar(DType::kF32, 1)}, {}, "sum")},
                       {}, "y");
  graph.set_outputs({y});
  EXPECT_EQ(rewrite(graph, {"fuse_elementwise"}, fusing(), 0), 1);
  EXPECT_EQ(nodes_of(graph), R"~(
%y: f32[N, 4] = fused_elementwise(%x) {program="t0=exp(x0); t1=add(t0,1); y=div(t0,t1)"}
)~");
}

TEST(FuseElementwise, DtypesChangeOnTheWay) {
  Graph graph;
  Value* x = graph.input("x", DType::kF16, {kN, 4});
  Value* z = graph.input("z", DType::kF16, {kN, 4});
  Value* keep = graph.add("less", {graph.add("mul", {x, z}), graph.scalar(DType::kF16, 0.1)});
  Value* y = graph.add("where", {keep, graph.add("exp", {x}), z});
  graph.set_outputs({graph.add("cast", {y}, {{"dtype", DType::kF32}}, "y")});
  EXPECT_EQ(rewrite(graph, {"fuse_elementwise"}, fusing(), 0), 1);
  EXPECT_EQ(graph.node_count(), 1u);
}

TEST(FuseElementwise, WhatIsReadOutsideOrSmallerStaysOutside) {
  Graph graph;
  Value* x = graph.input("x", DType::kF32, {kN, 4});
  Value* row = graph.input("row", DType::kF32, {4});
  Value* seen = graph.add("exp", {x}, {}, "seen");
  Value* small = graph.add("exp", {row}, {}, "small");  // would be computed N times
  graph.set_outputs({seen, graph.add("add", {seen, small}, {}, "y")});
  EXPECT_EQ(rewrite(graph, {"fuse_elementwise"}), 0);
}

TEST(FuseElementwise, LongChainsAreCut) {
  Graph graph;
  Value* x = graph.input("x", DType::kF32, {kN, 4});
  Value* y = x;
  for (int i = 0; i < 40; ++i) y = graph.add("sin", {y});
  graph.set_outputs({y});
  EXPECT_EQ(rewrite(graph, {"fuse_elementwise"}, fusing(), 0), 3);
  EXPECT_EQ(count(graph, "fused_elementwise"), 3);
}

TEST(FuseElementwise, ManyInputsAreCut) {
  Graph graph;
  Value* y = graph.input("x", DType::kF32, {kN, 4});
  for (int i = 0; i < 12; ++i)
    y = graph.add("add", {y, graph.input("x" + std::to_string(i), DType::kF32, {kN, 4})});
  graph.set_outputs({y});
  rewrite(graph, {"fuse_elementwise"}, fusing(), 0);
  EXPECT_EQ(count(graph, "fused_elementwise"), 2);
  EXPECT_EQ(graph.node_count(), 2u);
}

}  // namespace anymps::testing
