// SPDX-License-Identifier: Apache-2.0
#include "passes/pass_test.h"

namespace anymps::testing {

namespace {

Value* batch_norm(Graph& graph, Value* x, int64_t channels, const std::string& name,
                  int64_t axis = 1) {
  return graph.add(
      "batch_norm",
      {x, weights(graph, name + ".mean", {channels}),
       weights(graph, name + ".variance", {channels}, 0.5, 2),
       weights(graph, name + ".gamma", {channels}), weights(graph, name + ".beta", {channels})},
      {{"axis", axis}}, name);
}

TEST(FoldBatchNorm, IntoAConvolution) {
  Graph graph;
  Value* x = graph.input("x", DType::kF32, {kN, 3, 8, 8});
  Value* y = graph.add("conv", {x, weights(graph, "w", {4, 3, 3, 3})}, {}, "y");
  graph.set_outputs({batch_norm(graph, y, 4, "bn")});
  EXPECT_EQ(nodes_of(graph), R"(
%y: f32[N, 4, 6, 6] = conv(%x, %w)
%bn: f32[N, 4, 6, 6] = batch_norm(%y, %bn.mean, %bn.variance, %bn.gamma, %bn.beta)
)");
  EXPECT_EQ(rewrite(graph, {"fold_batch_norm"}), 1);
  EXPECT_EQ(nodes_of(graph), R"(
%bn: f32[N, 4, 6, 6] = conv(%x, %w_1, %y.bias)
)");
}

TEST(FoldBatchNorm, EveryLayoutOfWeights) {
  Graph graph;
  Value* x = graph.input("x", DType::kF32, {kN, 4, 6, 6});
  Value* hwc = graph.input("hwc", DType::kF32, {kN, 6, 6, 4});
  std::vector<Value*> results = {
      graph.add("conv", {x, weights(graph, "grouped", {6, 2, 3, 3}), weights(graph, "b", {6})},
                {{"groups", 2}}),
      graph.add("conv", {x, weights(graph, "depthwise", {4, 1, 3, 3})}, {{"groups", 4}}),
      graph.add("conv_transpose", {x, weights(graph, "up", {4, 3, 2, 2})},
                {{"strides", Ints{2, 2}}}),
      graph.add("conv_transpose", {x, weights(graph, "up_grouped", {4, 3, 2, 2})}, {{"groups", 2}}),
  };
  std::vector<Value*> outputs;
  for (Value* y : results)
    outputs.push_back(batch_norm(graph, y, y->shape()[1].value(), "bn_of_" + y->name));
  Value* last = graph.add("conv", {hwc, weights(graph, "hwio", {3, 3, 4, 5})},
                          {{"layout", "channels_last"}, {"weights_layout", "*IO"}});
  outputs.push_back(batch_norm(graph, last, 5, "bn_last", 3));
  graph.set_outputs(outputs);
  EXPECT_EQ(rewrite(graph, {"fold_batch_norm"}), 5);
  EXPECT_EQ(count(graph, "batch_norm"), 0);
}

TEST(FoldBatchNorm, ArithmeticOnChannels) {
  Graph graph;
  Value* x = graph.input("x", DType::kF32, {kN, 3, 8, 8});
  Value* y = graph.add("conv", {x, weights(graph, "w", {4, 3, 1, 1})}, {}, "y");
  Value* scaled = graph.add("mul", {weights(graph, "s", {4, 1, 1}), y}, {}, "scaled");
  Value* shifted = graph.add("sub", {scaled, weights(graph, "t", {1, 4, 1, 1})}, {}, "shifted");
  graph.set_outputs({graph.add("div", {shifted, graph.scalar(DType::kF32, 4)}, {}, "z")});
  EXPECT_EQ(rewrite(graph, {"fold_batch_norm"}), 3);
  EXPECT_EQ(count(graph, "conv"), 1);
  EXPECT_EQ(graph.node_count(), 1u);
}

TEST(FoldBatchNorm, ASign) {
  Graph graph;
  Value* x = graph.input("x", DType::kF32, {kN, 3, 8, 8});
  Value* y = graph.add("conv", {x, weights(graph, "w", {4, 3, 1, 1}), weights(graph, "b", {4})});
  graph.set_outputs({graph.add("neg", {y}, {}, "z")});
  EXPECT_EQ(rewrite(graph, {"fold_batch_norm"}), 1);
  EXPECT_EQ(graph.node_count(), 1u);
}

TEST(FoldBatchNorm, ABiasAloneKeepsTheWeights) {
  Graph graph;
  Value* x = graph.input("x", DType::kF32, {kN, 3, 8, 8});
  Value* w = weights(graph, "w", {4, 3, 1, 1});
  const ConstantPtr plain = w->constant;
  Value* y = graph.add("conv", {x, w}, {}, "y");
  graph.set_outputs({graph.add("add", {y, weights(graph, "t", {4, 1, 1})}, {}, "z")});
  EXPECT_EQ(rewrite(graph, {"fold_batch_norm"}), 1);
  EXPECT_EQ(graph.outputs()[0]->producer->input(1)->constant, plain);
}

// What stands before: each case is a different shape of weights.
TEST(FoldInputScale, ArithmeticBeforeAConvolution) {
  for (const int64_t groups : {1, 2}) {
    Graph graph;
    Value* x = graph.input("x", DType::kF32, {kN, 4, 8, 8});
    Value* y = graph.add("mul", {x, weights(graph, "s", {4, 1, 1})});
    y = graph.add("sub", {weights(graph, "t", {1}), y});
    graph.set_outputs({graph.add(
        "conv", {y, weights(graph, "w", {6, 4 / groups, 3, 2}), weights(graph, "b", {6})},
        {{"groups", groups}, {"activation", "relu"}}, "z")});
    EXPECT_EQ(rewrite(graph, {"fold_input_scale", "fold_input_scale"}), 2);
    EXPECT_EQ(graph.node_count(), 1u) << to_text(graph);
  }
}

TEST(FoldInputScale, ABatchNormBeforeAConvolution) {
  Graph graph;
  Value* x = graph.input("x", DType::kF32, {kN, 4, 8, 8});
  graph.set_outputs(
      {graph.add("conv", {batch_norm(graph, x, 4, "bn"), weights(graph, "w", {6, 4, 1, 1})})});
  EXPECT_EQ(rewrite(graph, {"fold_input_scale"}), 1);
  EXPECT_EQ(graph.node_count(), 1u);
}

// An activation that ends in a factor is found first.
TEST(FoldInputScale, ActivationsStay) {
  Graph graph;
  Value* x = graph.input("x", DType::kF32, {kN, 4, 8, 8});
  Value* gate = graph.add("clamp", {graph.add("add", {x, graph.scalar(DType::kF32, 3)})},
                          {{"min", 0.0}, {"max", 6.0}});
  Value* y = graph.add("div", {graph.add("mul", {x, gate}), graph.scalar(DType::kF32, 6)});
  graph.set_outputs({graph.add("conv", {y, weights(graph, "w", {6, 4, 1, 1})})});
  rewrite(graph, {});
  EXPECT_EQ(count(graph, "hard_swish"), 1) << to_text(graph);
}

// A border of zeros is not shifted; scaled it is still zero.
TEST(FoldInputScale, OnlyAScaleBeforeABorder) {
  Graph graph;
  Value* x = graph.input("x", DType::kF32, {kN, 4, 8, 8});
  const auto conv = [&](Value* y, const char* name) {
    return graph.add("conv", {y, weights(graph, name, {6, 4, 3, 3})}, {{"pads", Ints{1, 1, 1, 1}}});
  };
  Value* scaled = graph.add("mul", {x, weights(graph, "s", {4, 1, 1})});
  Value* shifted = graph.add("add", {x, weights(graph, "t", {4, 1, 1})});
  graph.set_outputs({conv(scaled, "w"), conv(shifted, "v")});
  EXPECT_EQ(rewrite(graph, {"fold_input_scale"}), 1);
  EXPECT_EQ(count(graph, "add"), 1);
  EXPECT_EQ(count(graph, "mul"), 0);
}

TEST(FoldInputScale, NotWhatOthersReadBefore) {
  Graph graph;
  Value* x = graph.input("x", DType::kF32, {kN, 4, 8, 8});
  Value* y = graph.add("mul", {x, weights(graph, "s", {4, 1, 1})});
  Value* rows = graph.add("mul", {x, weights(graph, "rows", {8, 1})});
  graph.set_outputs({graph.add("conv", {y, weights(graph, "w", {6, 4, 1, 1})}), y,
                     graph.add("conv", {rows, weights(graph, "v", {6, 4, 1, 1})})});
  EXPECT_EQ(rewrite(graph, {"fold_input_scale"}), 0);
}

TEST(FoldBatchNorm, NotWhatOthersRead) {
  Graph graph;
  Value* x = graph.input("x", DType::kF32, {kN, 3, 8, 8});
  Value* y = graph.add("conv", {x, weights(graph, "w", {4, 3, 1, 1})}, {}, "y");
  // A row, not a channel; a tensor that is wider than the result.
  Value* z = graph.add("conv", {x, weights(graph, "w2", {8, 3, 1, 1})}, {}, "z");
  Value* u = graph.add("conv", {x, weights(graph, "w3", {4, 3, 8, 8})}, {}, "u");
  graph.set_outputs({y, batch_norm(graph, y, 4, "bn"),
                     graph.add("mul", {z, weights(graph, "row", {8})}, {}, "rows"),
                     graph.add("add", {u, weights(graph, "wide", {1, 4, 8, 8})}, {}, "wider")});
  EXPECT_EQ(rewrite(graph, {"fold_batch_norm"}), 0);
}

}  // namespace

}  // namespace anymps::testing
