// SPDX-License-Identifier: Apache-2.0
#include "passes/pass_test.h"

namespace anymps::testing {

namespace {

struct FuseConv : ::testing::Test {
  Graph graph;
  Value* x = graph.input("x", DType::kF32, {kN, 3, 8, 8});
  Value* r = graph.input("r", DType::kF32, {kN, 4, 8, 8});
  Value* conv = graph.add("conv", {x, weights(graph, "w", {4, 3, 1, 1}), weights(graph, "b", {4})},
                          {}, "conv");
};

TEST_F(FuseConv, ResidualAndActivation) {
  Value* sum = graph.add("add", {r, conv}, {}, "sum");
  graph.set_outputs({graph.add("relu", {sum}, {}, "y")});
  EXPECT_EQ(nodes_of(graph), R"(
%conv: f32[N, 4, 8, 8] = conv(%x, %w, %b)
%sum: f32[N, 4, 8, 8] = add(%r, %conv)
%y: f32[N, 4, 8, 8] = relu(%sum)
)");
  EXPECT_EQ(rewrite(graph, {"fuse_conv"}), 2);
  EXPECT_EQ(nodes_of(graph), R"(
%y: f32[N, 4, 8, 8] = conv(%x, %w, %b, %r) {activation="relu"}
)");
}

TEST_F(FuseConv, ClampWithConstantBounds) {
  graph.set_outputs({graph.add(
      "clamp", {conv, graph.scalar(DType::kF32, 0), graph.scalar(DType::kF32, 6)}, {}, "y")});
  EXPECT_EQ(rewrite(graph, {"fuse_conv"}), 1);
  EXPECT_EQ(nodes_of(graph), R"(
%y: f32[N, 4, 8, 8] = conv(%x, %w, %b) {activation="clamp", beta=6}
)");
}

TEST_F(FuseConv, EachActivation) {
  const std::pair<const char*, NamedAttrs> kCases[] = {
      {"relu", {}},
      {"leaky_relu", {{"alpha", 0.2}}},
      {"elu", {{"alpha", 0.7}}},
      {"gelu", {}},
      {"gelu", {{"approximate", "tanh"}}},
      {"silu", {}},
      {"sigmoid", {}},
      {"tanh", {}},
      {"hard_swish", {}},
      {"hard_sigmoid", {{"alpha", 0.3}, {"beta", 0.4}}},
      {"clamp", {{"min", -0.5}}},
  };
  std::vector<Value*> outputs;
  for (const auto& [op, attrs] : kCases)
    outputs.push_back(graph.add(
        op, {graph.add("conv_transpose", {x, weights(graph, "t", {3, 4, 2, 2})})}, attrs));
  graph.set_outputs(outputs);
  EXPECT_EQ(rewrite(graph, {"fuse_conv"}), static_cast<int>(outputs.size()));
  EXPECT_EQ(graph.node_count(), outputs.size());
}

TEST_F(FuseConv, WhatOthersReadStays) {
  graph.set_outputs({conv, graph.add("relu", {conv}, {}, "y")});
  EXPECT_EQ(rewrite(graph, {"fuse_conv"}), 0);
}

TEST_F(FuseConv, ABroadcastIsNoResidual) {
  Value* gate = graph.input("gate", DType::kF32, {kN, 4, 1, 1});
  graph.set_outputs({graph.add("add", {conv, gate}, {}, "y")});
  EXPECT_EQ(rewrite(graph, {"fuse_conv"}), 0);
}

TEST_F(FuseConv, AnExtentThatMayDifferIsNoResidual) {
  Value* other = graph.input("other", DType::kF32, {Dim::symbol("M"), 4, 8, 8});
  graph.set_outputs({graph.add("add", {conv, other}, {}, "y")});
  EXPECT_EQ(rewrite(graph, {"fuse_conv"}), 0);
}

TEST_F(FuseConv, TheResidualMayComeLater) {
  Value* skip = graph.add("conv", {x, weights(graph, "ws", {4, 3, 1, 1})}, {}, "skip");
  graph.set_outputs({graph.add("relu", {graph.add("add", {conv, skip}, {}, "sum")}, {}, "y")});
  EXPECT_EQ(rewrite(graph, {"fuse_conv"}), 2);
  EXPECT_EQ(nodes_of(graph), R"(
%skip: f32[N, 4, 8, 8] = conv(%x, %ws)
%y: f32[N, 4, 8, 8] = conv(%x, %w, %b, %skip) {activation="relu"}
)");
}

}  // namespace

}  // namespace anymps::testing
