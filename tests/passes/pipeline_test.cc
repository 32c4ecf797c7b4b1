// SPDX-License-Identifier: Apache-2.0
// All passes together on the shapes of real models: what an inverted residual block and an encoder
// layer look like when every pass has had its turn, and that the pipeline comes to rest.
#include "passes/pass_test.h"

#include <cmath>

namespace anymps::testing {

namespace {

struct Pipeline : ::testing::Test {
  Graph graph;
  Value* number(double value) { return graph.scalar(DType::kF32, value); }
  Value* conv(Value* x, int64_t channels, int64_t kernel, int64_t groups, const std::string& name) {
    const int64_t inputs = x->shape()[1].value() / groups, pad = kernel / 2;
    Value* y =
        graph.add("conv", {x, weights(graph, name + ".w", {channels, inputs, kernel, kernel})},
                  {{"groups", groups}, {"pads", Ints{pad, pad, pad, pad}}}, name);
    return graph.add(
        "batch_norm",
        {y, weights(graph, name + ".mean", {channels}),
         weights(graph, name + ".var", {channels}, 1, 2),
         weights(graph, name + ".gamma", {channels}), weights(graph, name + ".beta", {channels})},
        {}, name + ".bn");
  }
  Value* relu6(Value* x) { return graph.add("clamp", {x, number(0), number(6)}); }
  Value* linear(Value* x, int64_t from, int64_t to, const std::string& name) {
    Value* y =
        graph.add("matmul", {x, weights(graph, name + ".w", {from, to}, -0.4, 0.4)}, {}, name);
    return graph.add("add", {y, weights(graph, name + ".b", {to})});
  }
  // Rounds that the pipeline needed.
  size_t run(bool nhwc) {
    PassContext context = fusing(nhwc);
    rewrite(graph, {}, context);
    return run_passes(graph, context).size() / all_passes().size();
  }
};

TEST_F(Pipeline, InvertedResidualBlockAndClassifier) {
  Value* x = graph.input("x", DType::kF32, {kN, 3, 6, 6});
  Value* skip = relu6(conv(x, 4, 3, 1, "stem"));
  Value* y = relu6(conv(skip, 8, 1, 1, "grow"));
  y = relu6(conv(y, 8, 3, 8, "depthwise"));
  y = graph.add("add", {conv(y, 4, 1, 1, "shrink"), skip});
  y = relu6(conv(y, 5, 1, 1, "head"));
  y = graph.add("reduce_mean", {y}, {{"axes", Ints{2, 3}}}, "pooled");
  y = graph.add("flatten", {y}, {}, "flat");
  y = graph.add("matmul", {y, weights(graph, "fc.w", {7, 5}), weights(graph, "fc.b", {7})},
                {{"transpose_b", true}}, "y");
  graph.set_outputs({y});
  EXPECT_EQ(run(true), 1u) << "the second run of the pipeline must find nothing";
  EXPECT_EQ(count(graph, "conv"), 5);
  EXPECT_EQ(count(graph, "transpose"), 1);
  EXPECT_EQ(graph.node_count(), 9u) << to_text(graph);  // and reduce_mean, reshape, matmul
}

TEST_F(Pipeline, EncoderLayer) {
  constexpr int64_t kHidden = 8, kHeads = 2, kDepth = 4;
  const Dim sequence = Dim::symbol("S");
  Value* x = graph.input("x", DType::kF32, {kN, sequence, kHidden});
  Value* mask = graph.input("mask", DType::kI64, {kN, sequence});
  mask = graph.add("unsqueeze", {graph.add("cast", {mask}, {{"dtype", DType::kF32}})},
                   {{"axes", Ints{1, 2}}});
  mask = graph.add("mul", {graph.add("sub", {number(1), mask}), number(-1e4)});
  auto heads = [&](const char* name, Ints perm) {
    Value* y = graph.add("reshape", {linear(x, kHidden, kHidden, name)},
                         {{"shape", Ints{0, 0, kHeads, kDepth}}});
    return graph.add("transpose", {y}, {{"perm", perm}});
  };
  Value* q = heads("q", {0, 2, 1, 3});
  Value* k = heads("k", {0, 2, 3, 1});
  Value* v = heads("v", {0, 2, 1, 3});
  Value* scores = graph.add("div", {graph.add("matmul", {q, k}), number(std::sqrt(kDepth))});
  Value* a = graph.add("matmul", {graph.add("softmax", {graph.add("add", {scores, mask})}), v});
  a = graph.add("reshape", {graph.add("transpose", {a}, {{"perm", Ints{0, 2, 1, 3}}})},
                {{"shape", Ints{0, 0, kHidden}}});
  Value* y = graph.add("add", {x, linear(a, kHidden, kHidden, "o")});
  y = graph.add_node(get_op("layer_norm"), {y, weights(graph, "g", {kHidden})}, {}, "norm", 1)
          ->output();
  Value* h = linear(y, kHidden, 16, "up");
  Value* erf = graph.add("erf", {graph.add("div", {h, number(std::sqrt(2))})});
  h = graph.add("mul", {graph.add("mul", {h, graph.add("add", {erf, number(1)})}), number(0.5)});
  graph.set_outputs({graph.add("add", {y, linear(h, 16, kHidden, "down")}, {}, "y")});
  EXPECT_EQ(run(true), 1u);
  for (const char* gone : {"softmax", "erf", "add", "div", "mul"})
    EXPECT_EQ(count(graph, gone), 0) << gone;
  EXPECT_EQ(count(graph, "sdpa"), 1);
  EXPECT_EQ(count(graph, "matmul"), 6);
  EXPECT_EQ(count(graph, "transpose"), 4) << to_text(graph);
  EXPECT_EQ(graph.outputs()[0]->producer->attrs.s("activation"), "none");
}

TEST_F(Pipeline, TheReferenceDriverOnlyFolds) {
  Value* x = graph.input("x", DType::kF32, {kN, 3, 6, 6});
  graph.set_outputs({relu6(conv(x, 4, 3, 1, "stem"))});
  PassContext context = fusing();
  context.fuses = false;
  rewrite(graph, {}, context);
  EXPECT_EQ(graph.node_count(), 2u) << to_text(graph);
  EXPECT_EQ(count(graph, "clamp"), 1);
}

TEST_F(Pipeline, LeavesOutWhatItIsTold) {
  Value* x = graph.input("x", DType::kF32, {kN, 3, 6, 6});
  graph.set_outputs({relu6(conv(x, 4, 3, 1, "stem"))});
  PassContext context = fusing();
  context.without = {"fuse_conv", "fold_batch_norm", "expand_batch_norm"};
  rewrite(graph, {}, context);
  EXPECT_EQ(count(graph, "batch_norm"), 1);
  EXPECT_EQ(count(graph, "clamp"), 1);
}

}  // namespace

}  // namespace anymps::testing
