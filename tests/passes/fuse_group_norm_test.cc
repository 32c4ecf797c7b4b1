// SPDX-License-Identifier: Apache-2.0
#include "passes/pass_test.h"

namespace anymps::testing {

namespace {

struct FuseGroupNorm : ::testing::Test {
  Graph graph;
  Value* x = graph.input("x", DType::kF32, {kN, 12, 5, 6});

  Value* apart(int64_t groups) {
    return graph.add("reshape", {x}, {{"shape", Ints{0, groups, -1}}}, "apart");
  }
  Value* back(Value* value) {
    return graph.add("reshape", {value}, {{"shape", Ints{0, 12, 5, 6}}}, "back");
  }
  Value* norm(Value* value, int64_t channels) {
    return graph.add("instance_norm",
                     {value, weights(graph, "g", {channels}), weights(graph, "b", {channels})},
                     {{"epsilon", 1e-3}}, "norm");
  }
  std::string rewritten(Value* y) {
    graph.set_outputs({y});
    rewrite(graph, {"fuse_group_norm"});
    return nodes_of(graph);
  }
};

TEST_F(FuseGroupNorm, FromAnInstanceNormOfGroups) {
  EXPECT_EQ(rewritten(back(norm(apart(4), 4))), R"(
%back: f32[N, 12, 5, 6] = group_norm(%x, %back.gamma, %back.beta) {groups=4, epsilon=0.001}
)");
}

TEST_F(FuseGroupNorm, WithScaleAndShiftOfChannels) {
  Value* y = back(norm(apart(3), 3));
  y = graph.add("mul", {weights(graph, "s", {12, 1, 1}), y}, {}, "scaled");
  EXPECT_EQ(rewritten(graph.add("add", {y, weights(graph, "t", {1, 12, 1, 1})}, {}, "y")), R"(
%y: f32[N, 12, 5, 6] = group_norm(%x, %y.gamma, %y.beta) {groups=3, epsilon=0.001}
)");
}

TEST_F(FuseGroupNorm, FromALayerNormOfGroups) {
  Value* y = graph.add("layer_norm", {apart(6)}, {}, "norm");
  EXPECT_EQ(rewritten(back(y)), R"(
%back: f32[N, 12, 5, 6] = group_norm(%x) {groups=6}
)");
}

TEST_F(FuseGroupNorm, ScaleOfAnInstanceNorm) {
  Value* y = graph.add("mul", {norm(x, 12), weights(graph, "s", {12, 1, 1})}, {}, "y");
  rewritten(y);
  EXPECT_EQ(count(graph, "mul"), 0);
}

TEST_F(FuseGroupNorm, WhatIsNotOfChannelsStays) {
  Value* y = back(norm(apart(4), 4));
  y = graph.add("mul", {y, weights(graph, "s", {5, 1})}, {}, "rows");
  rewritten(y);
  EXPECT_EQ(count(graph, "mul"), 1);
  EXPECT_EQ(count(graph, "group_norm"), 1);
}

TEST_F(FuseGroupNorm, OtherShapesStay) {
  Value* flat = graph.add("reshape", {norm(apart(4), 4)}, {{"shape", Ints{0, 12, 30}}}, "flat");
  rewritten(flat);
  EXPECT_EQ(count(graph, "group_norm"), 0);
}

}  // namespace

}  // namespace anymps::testing
