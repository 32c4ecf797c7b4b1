// SPDX-License-Identifier: Apache-2.0
#include "passes/pass_test.h"

namespace anymps::testing {

namespace {

struct FuseLayerNorm : ::testing::Test {
  Graph graph;
  Value* x = graph.input("x", DType::kF32, {kN, 5, 8});
  Value* number(double value) { return graph.scalar(DType::kF32, value); }
  Value* mean(Value* value) { return graph.add("reduce_mean", {value}, {{"axes", Ints{-1}}}); }
  Value* centred() { return graph.add("sub", {x, mean(x)}); }
  Value* with_epsilon(Value* variance) { return graph.add("add", {variance, number(0.5)}); }
  void expect(Value* y, const char* text) {
    graph.rename(y, "y");
    graph.set_outputs({y});
    EXPECT_GE(rewrite(graph, {"fuse_layer_norm"}), 1);
    EXPECT_EQ(nodes_of(graph), text);
  }
};

TEST_F(FuseLayerNorm, WithScaleAndShift) {
  Value* d = centred();
  Value* variance = mean(graph.add("pow", {d, number(2)}));
  Value* y = graph.add("div", {d, graph.add("sqrt", {with_epsilon(variance)})});
  y = graph.add("mul", {y, weights(graph, "gamma", {8})});
  expect(graph.add("add", {weights(graph, "beta", {8}), y}), R"(
%y: f32[N, 5, 8] = layer_norm(%x, %gamma, %beta) {epsilon=0.5}
)");
}

TEST_F(FuseLayerNorm, ByTheReciprocalRoot) {
  Value* d = centred();
  Value* variance = mean(graph.add("mul", {d, d}));
  expect(graph.add("mul", {graph.add("rsqrt", {with_epsilon(variance)}), d}), R"(
%y: f32[N, 5, 8] = layer_norm(%x) {epsilon=0.5}
)");
}

TEST_F(FuseLayerNorm, OverTwoAxes) {
  const NamedAttrs over = {{"axes", Ints{1, 2}}};
  Value* d = graph.add("sub", {x, graph.add("reduce_mean", {x}, over)});
  Value* variance = graph.add("reduce_mean", {graph.add("square", {d})}, over);
  expect(graph.add("div", {d, graph.add("sqrt", {with_epsilon(variance)})}), R"(
%y: f32[N, 5, 8] = layer_norm(%x) {axis=-2, epsilon=0.5}
)");
}

TEST_F(FuseLayerNorm, RootOfTheMeanSquare) {
  Value* squares = mean(graph.add("square", {x}));
  Value* y =
      graph.add("mul", {x, graph.add("reciprocal", {graph.add("sqrt", {with_epsilon(squares)})})});
  expect(graph.add("mul", {weights(graph, "gamma", {8}), y}), R"(
%y: f32[N, 5, 8] = rms_norm(%x, %gamma) {epsilon=0.5}
)");
}

TEST_F(FuseLayerNorm, AnotherAxisInTheMiddleIsSomethingElse) {
  Value* d = graph.add("sub", {x, graph.add("reduce_mean", {x}, {{"axes", Ints{1}}})});
  Value* variance = graph.add("reduce_mean", {graph.add("square", {d})}, {{"axes", Ints{1}}});
  graph.set_outputs({graph.add("div", {d, graph.add("sqrt", {with_epsilon(variance)})}, {}, "y")});
  EXPECT_EQ(rewrite(graph, {"fuse_layer_norm"}), 0);
}

TEST_F(FuseLayerNorm, AGateIsNoScale) {
  Value* gate = graph.input("gate", DType::kF32, {kN, 5, 8});
  Value* norm = graph.add_node(get_op("layer_norm"), {x}, {}, "norm", 1)->output();
  graph.set_outputs({graph.add("mul", {norm, gate}, {}, "y")});
  EXPECT_EQ(rewrite(graph, {"fuse_layer_norm"}), 0);
}

}  // namespace

}  // namespace anymps::testing
