// SPDX-License-Identifier: Apache-2.0
#include "passes/pass_test.h"

namespace anymps::testing {

namespace {

struct FuseMatmul : ::testing::Test {
  Graph graph;
  Value* a = graph.input("a", DType::kF32, {kN, 5, 8});
  Value* r = graph.input("r", DType::kF32, {kN, 5, 6});
  Value* b = graph.input("b", DType::kF32, {8, 6});
  Value* y = graph.add("matmul", {a, b}, {}, "product");
};

TEST_F(FuseMatmul, ScaleBiasResidualActivation) {
  y = graph.add("mul", {y, graph.scalar(DType::kF32, 0.125)}, {}, "scaled");
  y = graph.add("add", {weights(graph, "bias", {6}), y}, {}, "biased");
  y = graph.add("add", {y, r}, {}, "sum");
  graph.set_outputs({graph.add("gelu", {y}, {}, "y")});
  EXPECT_EQ(nodes_of(graph), R"(
%product: f32[N, 5, 6] = matmul(%a, %b)
%scaled: f32[N, 5, 6] = mul(%product, %const)
%biased: f32[N, 5, 6] = add(%bias, %scaled)
%sum: f32[N, 5, 6] = add(%biased, %r)
%y: f32[N, 5, 6] = gelu(%sum)
)");
  EXPECT_EQ(rewrite(graph, {"fuse_matmul"}), 4);
  EXPECT_EQ(nodes_of(graph), R"(
%y: f32[N, 5, 6] = matmul(%a, %b, %bias, %r) {alpha=0.125, activation="gelu"}
)");
}

TEST_F(FuseMatmul, ScaleAfterTheBiasStays) {
  y = graph.add("add", {weights(graph, "bias", {6}), y}, {}, "biased");
  graph.set_outputs({graph.add("mul", {y, graph.scalar(DType::kF32, 0.125)}, {}, "y")});
  EXPECT_EQ(rewrite(graph, {"fuse_matmul"}), 1);
  EXPECT_EQ(count(graph, "mul"), 1);
}

TEST_F(FuseMatmul, NothingAfterTheActivation) {
  y = graph.add("relu", {y}, {}, "rectified");
  graph.set_outputs({graph.add("add", {y, r}, {}, "y")});
  EXPECT_EQ(rewrite(graph, {"fuse_matmul"}), 1);
  EXPECT_EQ(count(graph, "add"), 1);
}

TEST_F(FuseMatmul, WhatOthersReadStays) {
  graph.set_outputs({y, graph.add("relu", {y}, {}, "y")});
  EXPECT_EQ(rewrite(graph, {"fuse_matmul"}), 0);
}

TEST_F(FuseMatmul, AColumnIsNoBias) {
  Value* column = graph.input("column", DType::kF32, {5, 1});
  graph.set_outputs({graph.add("add", {y, column}, {}, "y")});
  EXPECT_EQ(rewrite(graph, {"fuse_matmul"}), 0);
}

TEST(MatmulTranspose, BecomesAFlag) {
  Graph graph;
  Value* a = graph.input("a", DType::kF32, {kN, 5, 8});
  Value* w = graph.add("transpose", {weights(graph, "w", {6, 8})}, {}, "wt");
  Value* t = graph.add("transpose", {a}, {{"perm", Ints{0, 2, 1}}}, "at");
  graph.set_outputs({graph.add("matmul", {a, w}, {}, "y"),
                     graph.add("matmul", {t, weights(graph, "v", {5, 3})}, {}, "z")});
  EXPECT_EQ(rewrite(graph, {"matmul_transpose"}), 2);
  EXPECT_EQ(nodes_of(graph), R"(
%y: f32[N, 5, 6] = matmul(%a, %w) {transpose_b=true}
%z: f32[N, 8, 3] = matmul(%a, %v) {transpose_a=true}
)");
}

TEST(MatmulTranspose, AnotherPermutationStays) {
  Graph graph;
  Value* a = graph.input("a", DType::kF32, {kN, 5, 8});
  Value* k = graph.input("k", DType::kF32, {8, kN, 6});
  Value* t = graph.add("transpose", {k}, {{"perm", Ints{1, 0, 2}}});
  graph.set_outputs({graph.add("matmul", {a, t}, {}, "y")});
  EXPECT_EQ(rewrite(graph, {"matmul_transpose"}), 0);
}

}  // namespace

}  // namespace anymps::testing
