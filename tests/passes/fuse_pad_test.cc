// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "passes/pass_test.h"

namespace anymps::testing {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct FusePad : ::testing::Test {
  Graph graph;
  Value* x = graph.input("x", DType::kF32, {kN, 3, 9, 8});
  Value* padded(Value* value, const Ints& pads, double with = 0) {
    return graph.add("pad", {value}, {{"pads", pads}, {"value", with}}, "border");
  }
  Value* conv(Value* value, const NamedAttrs& attrs = {}, Shape w = {4, 3, 3, 3}) {
    return graph.add("conv", {value, weights(graph, "w", std::move(w))}, attrs, "y");
  }
  // Whether the border goes, the numbers being the same.
  void expect(Value* y, bool gone = true) {
    graph.set_outputs({y});
    const int pads = count(graph, "pad");
    EXPECT_EQ(rewrite(graph, {"fuse_pad"}) > 0, gone) << to_text(graph);
    EXPECT_EQ(count(graph, "pad"), gone ? 0 : pads) << to_text(graph);
  }
  void expect_kept(Value* y) { expect(y, false); }
};

TEST_F(FusePad, EachSideOfAConvolution) {
  expect(conv(padded(x, {0, 0, 1, 0, 0, 0, 2, 1}), {{"strides", Ints{2, 1}}}));
  EXPECT_EQ(nodes_of(graph), R"(
%y: f32[N, 4, 5, 7] = conv(%x, %w) {strides=[2, 1], pads=[1, 0, 2, 1]}
)");
}

TEST_F(FusePad, AddsToWhatIsThere) {
  expect(conv(padded(x, {0, 0, 1, 0, 0, 0, 0, 1}), {{"pads", Ints{1, 2, 1, 1}}}));
  EXPECT_EQ(nodes_of(graph), R"(
%y: f32[N, 4, 10, 10] = conv(%x, %w) {pads=[2, 2, 1, 2]}
)");
}

TEST_F(FusePad, WithDilations) {
  expect(conv(padded(x, {0, 0, 3, 4, 0, 0, 4, 3}), {{"dilations", Ints{2, 2}}}));
}

TEST_F(FusePad, NamedValid) {
  expect(conv(padded(x, {0, 0, 1, 1, 0, 0, 1, 1}), {{"auto_pad", "valid"}}));
}

TEST_F(FusePad, ExtentsThatAreNotKnown) {
  Value* open = graph.input("open", DType::kF32, {kN, 3, Dim::symbol("H"), Dim::symbol("W")});
  expect(conv(padded(open, {0, 0, 0, 1, 0, 0, 1, 0}), {}, {4, 3, 2, 2}));
}

TEST_F(FusePad, ChannelsLast) {
  Value* last = graph.input("last", DType::kF32, {kN, 9, 8, 3});
  expect(graph.add("conv",
                   {padded(last, {0, 1, 2, 0, 0, 0, 1, 0}), weights(graph, "w", {3, 3, 3, 4})},
                   {{"layout", "channels_last"}, {"weights_layout", "*IO"}}, "y"));
  EXPECT_EQ(count(graph, "conv"), 1);
}

TEST_F(FusePad, ThroughATranspose) {
  Value* last = graph.input("last", DType::kF32, {kN, 9, 8, 3});
  Value* turned = graph.add("transpose", {padded(last, {0, 1, 2, 0, 0, 0, 1, 0})},
                            {{"perm", Ints{0, 3, 1, 2}}}, "turned");
  expect(conv(turned));
  EXPECT_EQ(nodes_of(graph), R"(
%turned.inner: f32[N, 3, 9, 8] = transpose(%last) {perm=[0, 3, 1, 2]}
%y: f32[N, 4, 8, 9] = conv(%turned.inner, %w) {pads=[1, 2, 0, 1]}
)");
}

TEST_F(FusePad, ThroughAnUnsqueeze) {
  Value* line = graph.input("line", DType::kF32, {kN, 3, 9});
  Value* plane = graph.add("unsqueeze", {padded(line, {0, 0, 1, 0, 0, 2})}, {{"axes", Ints{-2}}});
  expect(conv(plane, {}, {4, 3, 1, 3}));
}

TEST_F(FusePad, NotWhereChannelsWerePadded) {
  Value* line = graph.input("line", DType::kF32, {kN, 2, 9});
  Value* plane = graph.add("unsqueeze", {padded(line, {0, 1, 1, 0, 0, 2})}, {{"axes", Ints{2}}});
  expect_kept(conv(plane, {}, {4, 3, 1, 3}));
}

TEST_F(FusePad, AValueThatIsAnInput) {
  Value* border = graph.add("pad", {x, nullptr, graph.scalar(DType::kF32, 0)},
                            {{"pads", Ints{0, 0, 1, 1, 0, 0, 1, 1}}});
  expect(conv(border));
}

TEST_F(FusePad, AllReaders) {
  Value* border = padded(x, {0, 0, 1, 1, 0, 0, 1, 1});
  Value* a = graph.add("conv", {border, weights(graph, "a", {4, 3, 3, 3})});
  Value* b = graph.add("conv", {border, weights(graph, "b", {4, 3, 3, 3})});
  expect(graph.add("add", {a, b}));
}

TEST_F(FusePad, NotWhileSomebodyElseReadsIt) {
  Value* border = padded(x, {0, 0, 1, 1, 0, 0, 1, 1});
  graph.set_outputs({conv(border), graph.add("relu", {border})});
  EXPECT_EQ(rewrite(graph, {"fuse_pad"}), 0);
}

TEST_F(FusePad, NotAnOutput) {
  Value* border = padded(x, {0, 0, 1, 1, 0, 0, 1, 1});
  graph.set_outputs({conv(border), border});
  EXPECT_EQ(rewrite(graph, {"fuse_pad"}), 0);
}

TEST_F(FusePad, NotOtherThanZero) { expect_kept(conv(padded(x, {0, 0, 1, 1, 0, 0, 1, 1}, 0.5))); }
TEST_F(FusePad, NotCrops) { expect_kept(conv(padded(x, {0, 0, 1, -1, 0, 0, 1, 1}))); }
TEST_F(FusePad, NotOfChannels) {
  expect_kept(conv(padded(x, {0, 1, 1, 1, 0, 0, 1, 1}), {}, {4, 4, 3, 3}));
}
TEST_F(FusePad, NotOfTheBatch) { expect_kept(conv(padded(x, {1, 0, 1, 1, 0, 0, 1, 1}))); }
TEST_F(FusePad, NotMirrored) {
  expect_kept(
      conv(graph.add("pad", {x}, {{"pads", Ints{0, 0, 1, 1, 0, 0, 1, 1}}, {"mode", "reflect"}})));
}
TEST_F(FusePad, NotWiderThanTheWindow) { expect_kept(conv(padded(x, {0, 0, 3, 1, 0, 0, 1, 1}))); }
TEST_F(FusePad, NotWhereTheWindowsFindTheirOwnPads) {
  expect_kept(conv(padded(x, {0, 0, 1, 1, 0, 0, 1, 1}), {{"auto_pad", "same_upper"}}));
}
TEST_F(FusePad, NotOfATransposedConvolution) {
  expect_kept(graph.add("conv_transpose",
                        {padded(x, {0, 0, 1, 1, 0, 0, 1, 1}), weights(graph, "t", {3, 4, 3, 3})}));
}

TEST_F(FusePad, AveragesCountTheBorder) {
  expect(
      graph.add("avg_pool", {padded(x, {0, 0, 1, 0, 0, 0, 1, 2})}, {{"kernel", Ints{3, 3}}}, "y"));
  EXPECT_EQ(nodes_of(graph), R"(
%y: f32[N, 3, 9, 8] = avg_pool(%x) {kernel=[3, 3], pads=[1, 0, 1, 2], count_include_pad=true}
)");
}

TEST_F(FusePad, AveragesWithPadsThatCount) {
  expect(
      graph.add("avg_pool", {padded(x, {0, 0, 1, 0, 0, 0, 1, 1})},
                {{"kernel", Ints{3, 3}}, {"pads", Ints{1, 1, 0, 0}}, {"count_include_pad", true}}));
}

TEST_F(FusePad, NotAveragesWhosePadsDoNotCount) {
  expect_kept(graph.add("avg_pool", {padded(x, {0, 0, 1, 0, 0, 0, 1, 1})},
                        {{"kernel", Ints{3, 3}}, {"pads", Ints{1, 1, 0, 0}}}));
}

TEST_F(FusePad, NotPoolingThatRoundsUp) {
  expect_kept(graph.add("avg_pool", {padded(x, {0, 0, 1, 0, 0, 0, 1, 0})},
                        {{"kernel", Ints{3, 3}}, {"strides", Ints{2, 2}}, {"ceil_mode", true}}));
}

TEST_F(FusePad, TheLargestIsNeverTheBorder) {
  expect(graph.add("max_pool", {padded(x, {0, 0, 1, 2, 0, 0, 1, 0}, -kInfinity)},
                   {{"kernel", Ints{3, 3}}, {"strides", Ints{2, 2}}}));
}

TEST_F(FusePad, ZerosLoseToWhatIsNotNegative) {
  Value* y = graph.add("relu", {x});
  expect(graph.add("max_pool", {padded(y, {0, 0, 1, 1, 0, 0, 1, 1})},
                   {{"kernel", Ints{3, 3}}, {"strides", Ints{2, 2}}}));
}

TEST_F(FusePad, NotZerosAmongNegativeNumbers) {
  expect_kept(
      graph.add("max_pool", {padded(x, {0, 0, 1, 1, 0, 0, 1, 1})}, {{"kernel", Ints{3, 3}}}));
}

TEST_F(FusePad, NotWhereThePlacesAreAskedFor) {
  Node* pool = graph.add_node(get_op("max_pool"), {padded(x, {0, 0, 1, 1, 0, 0, 1, 1}, -kInfinity)},
                              {{"kernel", Ints{3, 3}}}, "pool", 2);
  graph.set_outputs(pool->outputs);
  EXPECT_EQ(rewrite(graph, {"fuse_pad"}), 0);
}

TEST_F(FusePad, ComputedPadsThatAreKnown) {
  Value* pads =
      graph.add("concat", {graph.ints({0, 0, 1, 1}), graph.ints({0, 0, 1, 1})}, {{"axis", 0}});
  graph.set_outputs({conv(graph.add("pad", {x, pads}))});
  rewrite(graph, {});
  EXPECT_EQ(count(graph, "pad"), 0) << to_text(graph);
}

}  // namespace

}  // namespace anymps::testing
