// SPDX-License-Identifier: Apache-2.0
#include <map>

#include "passes/pass_test.h"

namespace anymps::testing {

namespace {

struct Layout : ::testing::Test {
  Graph graph;
  Value* x = graph.input("x", DType::kF32, {kN, 3, 8, 8});
  Value* conv(Value* input, int64_t channels, const std::string& name) {
    const int64_t inputs = input->shape()[1].value();
    return graph.add("conv", {input, weights(graph, name + ".w", {channels, inputs, 1, 1})}, {},
                     name);
  }
  // All becomes channels last: transposes remain where the region begins and ends.
  void expect_transposes(std::vector<Value*> outputs, int transposes) {
    graph.set_outputs(std::move(outputs));
    rewrite(graph, {"layout", "simplify", "common_subexpressions", "fold_constants"}, fusing(true));
    EXPECT_EQ(count(graph, "transpose"), transposes) << to_text(graph);
    const std::string before = to_text(graph);
    rewrite(graph, {"layout"}, fusing(true));
    EXPECT_EQ(to_text(graph), before) << "a second run must change nothing";
  }
};

TEST_F(Layout, TransposesOnlyAtTheBorders) {
  Value* a = graph.add("relu", {conv(x, 4, "a")}, {}, "a.relu");
  Value* pooled =
      graph.add_node(get_op("max_pool"), {a}, {{"kernel", Ints{2, 2}}}, "pool", 1)->output();
  graph.set_outputs({conv(pooled, 5, "b")});
  EXPECT_EQ(nodes_of(graph), R"(
%a: f32[N, 4, 8, 8] = conv(%x, %a.w)
%a.relu: f32[N, 4, 8, 8] = relu(%a)
%pool: f32[N, 4, 7, 7] = max_pool(%a.relu) {kernel=[2, 2]}
%b: f32[N, 5, 7, 7] = conv(%pool, %b.w)
)");
  rewrite(graph, {"layout"}, fusing(true));
  EXPECT_EQ(nodes_of(graph), R"(
%x.nhwc: f32[N, 8, 8, 3] = transpose(%x) {perm=[0, 2, 3, 1]}
%a_1: f32[N, 8, 8, 4] = conv(%x.nhwc, %a.w) {layout="channels_last"}
%a.relu_1: f32[N, 8, 8, 4] = relu(%a_1)
%pool_1: f32[N, 7, 7, 4] = max_pool(%a.relu_1) {kernel=[2, 2], layout="channels_last"}
%b_1: f32[N, 7, 7, 5] = conv(%pool_1, %b.w) {layout="channels_last"}
%b: f32[N, 5, 7, 7] = transpose(%b_1) {perm=[0, 3, 1, 2]}
)");
}

// As in a training step, where a norm over the batch stands between convolutions.
TEST_F(Layout, ALoneConvolutionWithWeightsOfEachRunStaysOnPlanes) {
  const auto alone = [&](Dims window, int64_t groups) {
    Graph lone;
    Value* image = lone.input("x", DType::kF32, {2, 4, 8, 8});
    Value* y = lone.add("conv", {image, lone.input("w", DType::kF32, std::move(window))},
                        {{"groups", groups}}, "y");
    lone.set_outputs({lone.add("cumsum", {y}, {{"axis", 1}}), y});
    rewrite(lone, {"layout"}, fusing(true));
    return count(lone, "transpose") == 0;
  };
  EXPECT_TRUE(alone({6, 4, 1, 1}, 1));
  EXPECT_TRUE(alone({4, 1, 3, 3}, 4));
  EXPECT_FALSE(alone({6, 4, 3, 3}, 1));
  Value* w = graph.input("w", DType::kF32, {5, 4, 1, 1});
  Value* y = graph.add("conv", {graph.add("relu", {conv(x, 4, "a")}), w}, {}, "y");
  expect_transposes({y}, 2);
}

TEST_F(Layout, GlobalPoolingEndsWithoutATranspose) {
  Value* pooled = graph.add("reduce_mean", {conv(x, 4, "a")}, {{"axes", Ints{2, 3}}}, "pooled");
  graph.set_outputs({graph.add("flatten", {pooled}, {}, "y")});
  rewrite(graph, {"layout", "simplify"}, fusing(true));
  rewrite(graph, {"simplify"}, fusing(true));
  EXPECT_EQ(nodes_of(graph), R"(
%x.nhwc: f32[N, 8, 8, 3] = transpose(%x) {perm=[0, 2, 3, 1]}
%a_1: f32[N, 8, 8, 4] = conv(%x.nhwc, %a.w) {layout="channels_last"}
%pooled_1: f32[N, 1, 1, 4] = reduce_mean(%a_1) {axes=[1, 2]}
%y: f32[N, 4] = reshape(%pooled_1) {shape=[0, 4]}
)");
}

TEST_F(Layout, ReductionThatDropsItsAxes) {
  Value* pooled =
      graph.add("reduce_max", {conv(x, 4, "a")}, {{"axes", Ints{2, 3}}, {"keep_dims", false}});
  expect_transposes({pooled}, 1);
}

TEST_F(Layout, ResidualsAndBranches) {
  Value* a = conv(x, 4, "a");
  Value* left = conv(graph.add("relu", {a}), 4, "left");
  Value* right =
      graph.add("conv", {a, weights(graph, "right.w", {4, 4, 1, 1}), nullptr, left}, {}, "right");
  Value* sum = graph.add("add", {right, graph.add("sigmoid", {a})});
  expect_transposes({conv(graph.add("concat", {sum, left}, {{"axis", 1}}), 3, "end")}, 2);
}

TEST_F(Layout, ConstantsThatBroadcastFollow) {
  Value* a = graph.add("mul", {conv(x, 4, "a"), weights(graph, "scale", {4, 1, 1})});
  a = graph.add("add", {a, weights(graph, "position", {1, 4, 8, 8})});
  a = graph.add("sub", {graph.scalar(DType::kF32, 1), a});
  expect_transposes({conv(a, 4, "b")}, 2);
}

TEST_F(Layout, AGateOfOnePixelFollows) {
  Value* a = conv(x, 4, "a");
  Value* gate = graph.add("reduce_mean", {a}, {{"axes", Ints{2, 3}}});
  gate = graph.add("sigmoid", {conv(gate, 4, "squeeze")});
  expect_transposes({conv(graph.add("mul", {a, gate}), 2, "b")}, 2);
}

TEST_F(Layout, OpsWithAxesFollow) {
  Value* a = conv(x, 4, "a");
  a = graph.add("softmax", {a}, {{"axis", 1}});
  a = graph.add("pad", {a}, {{"pads", Ints{0, 1, 2, 0, 0, 0, 0, 3}}});
  a = graph.add("slice", {a},
                {{"starts", Ints{1, 2}}, {"ends", Ints{4, 9}}, {"axes", Ints{1, -1}}});
  Node* parts =
      graph.add_node(get_op("split"), {a}, {{"axis", 1}, {"sizes", Ints{1, 2}}}, "parts", 2);
  a = graph.add("batch_norm",
                {parts->outputs[1], weights(graph, "m", {2}), weights(graph, "v", {2}, 1, 2)});
  a = graph.add("concat", {a, parts->outputs[0]}, {{"axis", 1}});
  expect_transposes({conv(a, 2, "b")}, 2);
}

TEST_F(Layout, OpsThatKnowTheLayoutFollow) {
  Value* a = graph.add("depth_to_space", {conv(x, 8, "a")}, {{"block", 2}});
  a = graph.add("space_to_depth", {a}, {{"block", 2}});
  a = graph.add("resize", {a}, {{"scales", std::vector<double>{1, 1, 2, 0.5}}, {"mode", "linear"}});
  a = graph.add("avg_pool", {a}, {{"kernel", Ints{3, 2}}, {"pads", Ints{1, 0, 1, 0}}});
  a = graph.add("lrn", {a}, {{"size", 3}});
  expect_transposes({conv(a, 2, "b")}, 2);
}

// Lists that are computed stay as they are; the attribute axes says what they are about.
TEST_F(Layout, ListsThatAreComputedFollow) {
  Value* like = graph.input("like", DType::kF32, {1, 1, Dim::symbol("H"), Dim::symbol("W")});
  Value* sizes = graph.add(
      "concat",
      {graph.ints({2, 4}),
       graph.add("slice", {graph.add("shape", {like})}, {{"starts", Ints{2}}, {"ends", Ints{4}}})},
      {{"axis", 0}});
  Value* k = graph.input("k", DType::kF32, {Dim::symbol("K")});
  Value* first = graph.add("sub", {graph.add("shape", {k}), graph.ints({1})});
  Value* a = graph.add("resize", {conv(x, 4, "a"), sizes}, {{"mode", "linear"}});
  a = graph.add("slice", {a, first, graph.ints({9})}, {{"axes", Ints{3}}});
  graph.set_outputs({graph.add("conv", {a, weights(graph, "b", {2, 4, 1, 1})})});
  rewrite(graph, {"layout", "simplify"}, fusing(true));
  EXPECT_EQ(count(graph, "transpose"), 2) << to_text(graph);
}

TEST_F(Layout, ACropFollows) {
  Value* a = graph.add("resize", {conv(x, 4, "a")},
                       {{"sizes", Ints{2, 4, 5, 6}},
                        {"roi", std::vector<double>{0, 0, 0.2, 0.3, 1, 1, 0.7, 0.9}},
                        {"coordinate", "tf_crop_and_resize"},
                        {"mode", "linear"}});
  expect_transposes({conv(a, 2, "b")}, 2);
}

TEST_F(Layout, OneAndThreeSpatialAxes) {
  Value* line = graph.input("line", DType::kF32, {kN, 3, 9});
  Value* cube = graph.input("cube", DType::kF32, {kN, 3, 4, 5, 6});
  auto twice = [&](Value* input, Shape kernel, const std::string& name) {
    Value* y = graph.add("relu", {graph.add("conv", {input, weights(graph, name, kernel)})});
    return graph.add("conv", {y, weights(graph, name + "2", kernel)});
  };
  expect_transposes({twice(line, {3, 3, 2}, "w1"), twice(cube, {3, 3, 1, 2, 3}, "w3")}, 4);
}

TEST_F(Layout, WhatCannotFollowGetsItsTranspose) {
  Value* a = graph.add("cumsum", {conv(x, 4, "a")}, {{"axis", 1}});
  expect_transposes({conv(a, 4, "b")}, 4);
}

TEST_F(Layout, ConvolutionsOfBytes) {
  const auto bytes = [&](Value* input, const std::string& name) {
    return graph.add("quantize", {input, graph.scalar(DType::kF32, 0.05)}, {{"dtype", DType::kU8}},
                     name);
  };
  const auto quantized_conv = [&](Value* input, int64_t channels, const std::string& name) {
    Value* w = weights(graph, name + ".w", {channels, input->shape()[1].value(), 3, 3}, -100, 100,
                       DType::kI8);
    return graph.add(
        "quantized_conv",
        {input, w, nullptr, nullptr, weights(graph, name + ".s", {channels}, 0.001, 0.01)},
        {{"pads", Ints{1, 1, 1, 1}}}, name);
  };
  Value* a = quantized_conv(bytes(x, "x8"), 4, "a");
  Value* scaled = graph.add("quantize", {a, weights(graph, "steps", {4}, 0.1, 1)},
                            {{"dtype", DType::kU8}, {"axis", 1}}, "a8");
  expect_transposes({quantized_conv(scaled, 5, "b")}, 2);
  EXPECT_NE(to_text(graph).find("axis=3"), std::string::npos) << to_text(graph);
}

TEST_F(Layout, StepsThatFollowFromTheNumbers) {
  const std::vector<Value*> steps =
      graph.add_node(get_op("dynamic_quantize"), {conv(x, 4, "a")}, {}, "steps", 3)->outputs;
  Value* w = weights(graph, "b.w", {5, 4, 1, 1}, -100, 100, DType::kI8);
  Value* b = graph.add("quantized_conv", {steps[0], w, steps[2], nullptr, steps[1]}, {}, "b");
  expect_transposes({b}, 2);
}

TEST_F(Layout, NotForDriversThatDoNotAskForIt) {
  graph.set_outputs({conv(x, 4, "a")});
  EXPECT_EQ(rewrite(graph, {"layout"}, fusing(false)), 0);
}

// The pass changes the attributes that a record's rule speaks of: the record has them.
TEST(LayoutRules, RecordsHaveTheAttributes) {
  const std::map<LayoutRule, std::vector<const char*>> named = {
      {LayoutRule::kConvolution, {"layout"}},
      {LayoutRule::kImage, {"layout"}},
      {LayoutRule::kLayout, {"layout"}},
      {LayoutRule::kElements, {}},
      {LayoutRule::kAxis, {"axis"}},
      {LayoutRule::kJoin, {"axis"}},
      {LayoutRule::kSlice, {"axes", "starts"}},
      {LayoutRule::kPads, {"pads"}},
      {LayoutRule::kSizes, {"sizes", "scales"}},
      {LayoutRule::kReduction, {"axes", "keep_dims"}}};
  std::map<LayoutRule, int> counts;
  for (const Op* op : all_ops()) {
    if (op->layout == LayoutRule::kNone) continue;
    ++counts[op->layout];
    for (const char* attr : named.at(op->layout))
      EXPECT_GE(op->attr_index(attr), 0) << op->name << " has no attribute " << attr;
  }
  EXPECT_EQ(counts.size(), named.size());
}

// What comes from outside is brought in where a convolution follows, which would read it so anyway.
TEST_F(Layout, AnOperandFromOutside) {
  Value* state = graph.input("state", DType::kF32, {kN, 4, 8, 8});
  Value* a = conv(x, 4, "a");
  Value* sum = graph.add("add", {a, state}, {}, "sum");
  Value* joined = graph.add("concat", {sum, state}, {{"axis", 1}}, "joined");
  expect_transposes({conv(joined, 5, "b")}, 3);
}

TEST_F(Layout, AnOperandFromOutsideOfTheLastConvolutionStays) {
  Value* state = graph.input("state", DType::kF32, {kN, 4, 8, 8});
  expect_transposes({graph.add("add", {conv(x, 4, "a"), state}, {}, "sum")}, 2);
  EXPECT_EQ(graph.outputs()[0]->producer->op->name, "add");
}

TEST_F(Layout, NormsOfChannelsStayInside) {
  for (const char* op : {"instance_norm", "group_norm"}) {
    Graph own;
    Value* image = own.input("x", DType::kF32, {kN, 3, 8, 8});
    Value* a = own.add("conv", {image, weights(own, "v", {4, 3, 1, 1})}, {}, "a");
    const NamedAttrs groups =
        std::string_view(op) == "group_norm" ? NamedAttrs{{"groups", 2}} : NamedAttrs{};
    Value* norm = own.add(op, {a, weights(own, "g", {4}), weights(own, "b", {4})}, groups, "norm");
    own.set_outputs({own.add("conv", {norm, weights(own, "w", {5, 4, 1, 1})}, {}, "b")});
    rewrite(own, {"layout", "simplify"}, fusing(true));
    EXPECT_EQ(count(own, "transpose"), 2) << to_text(own);
  }
}

}  // namespace

}  // namespace anymps::testing
