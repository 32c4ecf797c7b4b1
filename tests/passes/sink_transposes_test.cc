// SPDX-License-Identifier: Apache-2.0
#include "passes/pass_test.h"

namespace anymps::testing {

namespace {

struct SinkTransposes : ::testing::Test {
  Graph graph;
  Value* x = graph.input("x", DType::kF32, {kN, 7, 6});
  Value* channels_first() { return graph.add("transpose", {x}, {{"perm", Ints{0, 2, 1}}}); }
  Value* cut(const Ints& to) { return graph.add("reshape", {channels_first()}, {{"shape", to}}); }
  Value* squares(Value* of, const Ints& axes, bool keep = false) {
    return graph.add("reduce_sum_square", {of}, {{"axes", axes}, {"keep_dims", keep}}, "s");
  }
};

// A spectrum from a convolution, and its product with a bank of filters.
TEST_F(SinkTransposes, IntoAProduct) {
  graph.set_outputs(
      {graph.add("matmul", {squares(cut({0, 2, 3, -1}), {1}), weights(graph, "w", {3, 8})},
                 {{"transpose_a", true}}, "y")});
  EXPECT_EQ(rewrite(graph, {"sink_transposes"}), 1);
  rewrite(graph, {"matmul_transpose", "simplify"});
  EXPECT_EQ(nodes_of(graph), R"(
%s.parts: f32[N, 7, 2, 3] = reshape(%x) {shape=[0, 7, 2, 3]}
%s_1: f32[N, 7, 3] = reduce_sum_square(%s.parts) {axes=[2], keep_dims=false}
%y: f32[N, 7, 8] = matmul(%s_1, %w)
)");
}

TEST_F(SinkTransposes, IntoATranspose) {
  Value* y = squares(cut({-1, 2, 3, 7}), {-3});
  // The extent that is inferred is not the last: it might be any.
  graph.set_outputs({graph.add("transpose", {y}, {{"perm", Ints{0, 2, 1}}}, "y")});
  EXPECT_EQ(rewrite(graph, {"sink_transposes"}), 0);
  Graph other;
  x = other.input("x", DType::kF32, {kN, 7, 6});
  Value* turned = other.add("transpose", {x}, {{"perm", Ints{2, 0, 1}}});
  Value* mean = other.add("reduce_mean", {turned}, {{"axes", Ints{-1}}, {"keep_dims", true}}, "m");
  other.set_outputs({other.add("transpose", {mean}, {{"perm", Ints{1, 0, 2}}}, "y")});
  EXPECT_EQ(rewrite(other, {"sink_transposes"}), 1);
  rewrite(other, {"simplify"});
  EXPECT_EQ(count(other, "transpose"), 1);
}

// Read by others, by an op that wants the transpose, or cut in two places.
TEST_F(SinkTransposes, NotElsewhere) {
  Value* shared = cut({0, 2, 3, -1});
  Value* w = weights(graph, "w", {3, 8});
  graph.set_outputs(
      {graph.add("matmul", {squares(shared, {1}), w}, {{"transpose_a", true}}), shared,
       graph.add("exp", {squares(channels_first(), {1})}),
       graph.add("matmul", {squares(channels_first(), {0}), weights(graph, "v", {7, 2})}),
       graph.add("transpose", {squares(cut({0, 2, 3, 7, 1}), {1})})});
  EXPECT_EQ(rewrite(graph, {"sink_transposes"}), 1);  // the product of both axes alone
}

}  // namespace

}  // namespace anymps::testing
