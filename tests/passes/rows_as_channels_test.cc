// SPDX-License-Identifier: Apache-2.0
#include "passes/pass_test.h"

namespace anymps::testing {

namespace {

struct RowsAsChannels : ::testing::Test {
  Graph graph;
  Value* conv(Value* x, Shape w, const NamedAttrs& attrs = {}) {
    std::vector<Value*> inputs{x, weights(graph, "w", w), weights(graph, "b", {w[0]})};
    return graph.add("conv", inputs, attrs, "y");
  }
  int rewritten(Value* y) {
    graph.set_outputs({y});
    return rewrite(graph, {"rows_as_channels", "simplify", "fold_constants"});
  }
};

TEST_F(RowsAsChannels, AWindowAsWideAsTheImage) {
  Value* x = graph.input("x", DType::kF32, {2, 1, 9, 6});
  EXPECT_GT(rewritten(conv(x, {5, 1, 3, 6})), 0);
  EXPECT_EQ(graph.outputs()[0]->shape(), (Dims{2, 5, 7, 1}));
  EXPECT_NE(nodes_of(graph).find("weights_layout=\"*IO\""), std::string::npos) << nodes_of(graph);
}

TEST_F(RowsAsChannels, StepsAndBordersOfRows) {
  Value* x = graph.input("x", DType::kF32, {kN, 1, 9, 6});
  EXPECT_GT(rewritten(conv(x, {5, 1, 3, 6},
                           {{"strides", Ints{2, 4}},
                            {"dilations", Ints{2, 1}},
                            {"pads", Ints{1, 0, 2, 0}},
                            {"activation", "relu"}})),
            0);
}

TEST_F(RowsAsChannels, OtherWindowsStay) {
  const auto stays = [](Dims x, Shape w, const NamedAttrs& attrs) {
    Graph own;
    Value* y = own.add("conv", {own.input("x", DType::kF32, std::move(x)), weights(own, "w", w)},
                       attrs, "y");
    own.set_outputs({y});
    return rewrite(own, {"rows_as_channels"}) == 0;
  };
  EXPECT_TRUE(stays({2, 1, 9, 6}, {5, 1, 3, 5}, {})) << "narrower";
  EXPECT_TRUE(stays({2, 1, 9, 6}, {5, 1, 3, 6}, {{"pads", Ints{0, 1, 0, 0}}})) << "a border beside";
  EXPECT_TRUE(stays({2, 3, 9, 6}, {5, 3, 3, 6}, {})) << "three channels";
  EXPECT_TRUE(stays({2, 1, 9, 6}, {5, 1, 3, 6}, {{"auto_pad", "same_upper"}})) << "other borders";
}

}  // namespace

}  // namespace anymps::testing
