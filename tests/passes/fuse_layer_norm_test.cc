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

// As TensorFlow writes it: x * t + (beta - mean * t).
TEST_F(FuseLayerNorm, AsABatchNorm) {
  Value* average = mean(x);
  Value* d = graph.add("sub", {average, x});
  Value* t = graph.add("mul", {graph.add("rsqrt", {with_epsilon(mean(graph.add("mul", {d, d})))}),
                               weights(graph, "gamma", {8})});
  Value* rest = graph.add("sub", {weights(graph, "beta", {8}), graph.add("mul", {average, t})});
  expect(graph.add("add", {graph.add("mul", {x, t}), rest}), R"(
%y: f32[N, 5, 8] = layer_norm(%x, %gamma, %beta) {epsilon=0.5}
)");
}

TEST_F(FuseLayerNorm, AsABatchNormOfAnotherMean) {
  Value* other = graph.input("other", DType::kF32, {kN, 5, 8});
  Value* d = centred();
  Value* t = graph.add("mul", {graph.add("rsqrt", {with_epsilon(mean(graph.add("mul", {d, d})))}),
                               weights(graph, "gamma", {8})});
  Value* rest = graph.add("sub", {weights(graph, "beta", {8}), graph.add("mul", {mean(other), t})});
  graph.set_outputs({graph.add("add", {graph.add("mul", {x, t}), rest})});
  EXPECT_EQ(rewrite(graph, {"fuse_layer_norm"}), 0);
}

TEST_F(FuseLayerNorm, ScaledBeforeTheQuotient) {
  Value* d = centred();
  Value* root = graph.add("sqrt", {with_epsilon(mean(graph.add("square", {d})))});
  expect(graph.add("div", {graph.add("mul", {weights(graph, "gamma", {8}), d}), root}), R"(
%y: f32[N, 5, 8] = layer_norm(%x, %gamma) {epsilon=0.5}
)");
}

TEST_F(FuseLayerNorm, ScaledByTheReciprocal) {
  Value* d = centred();
  Value* root = graph.add("rsqrt", {with_epsilon(mean(graph.add("square", {d})))});
  expect(graph.add("mul", {d, graph.add("mul", {root, weights(graph, "gamma", {8})})}), R"(
%y: f32[N, 5, 8] = layer_norm(%x, %gamma) {epsilon=0.5}
)");
}

TEST_F(FuseLayerNorm, AFactorThatIsNoParameterStays) {
  Value* d = centred();
  Value* root = graph.add("rsqrt", {with_epsilon(mean(graph.add("square", {d})))});
  Value* rows = weights(graph, "rows", {5, 1});
  graph.set_outputs({graph.add("mul", {d, graph.add("mul", {root, rows})})});
  EXPECT_EQ(rewrite(graph, {"fuse_layer_norm"}), 0);
  EXPECT_EQ(graph.node_count(), 8u) << to_text(graph);
}

}  // namespace

}  // namespace anymps::testing
