// SPDX-License-Identifier: Apache-2.0
#include "passes/pass_test.h"

namespace anymps::testing {

namespace {

struct SinkReshapes : ::testing::Test {
  Graph graph;
  Value* x = graph.input("x", DType::kF32, {kN, 5, 6});
  // As a dense layer of three axes is converted: rows, product, and back.
  Value* product(const Ints& to) {
    Value* rows = graph.add("reshape", {x}, {{"shape", Ints{-1, 6}}}, "rows");
    Value* y = graph.add("matmul", {rows, weights(graph, "w", {6, 8})}, {}, "p");
    return graph.add("reshape", {y}, {{"shape", to}}, "back");
  }
};

TEST_F(SinkReshapes, ABiasAndAnActivation) {
  Value* y = graph.add("add", {weights(graph, "b", {8}), product({-1, 5, 8})}, {}, "sum");
  graph.set_outputs({graph.add("relu", {y}, {}, "y")});
  EXPECT_EQ(rewrite(graph, {"sink_reshapes"}), 1);
  rewrite(graph, {"fold_batch_norm", "sink_reshapes", "fuse_matmul"});
  EXPECT_EQ(nodes_of(graph), R"(
%rows: f32[5*N, 6] = reshape(%x) {shape=[-1, 6]}
%p: f32[5*N, 8] = matmul(%rows, %w, %p.bias) {activation="relu"}
%y: f32[N, 5, 8] = reshape(%p) {shape=[-1, 5, 8]}
)");
}

TEST_F(SinkReshapes, ABiasOfHeadsAndAScale) {
  Value* y = graph.add("add", {product({-1, 5, 2, 4}), weights(graph, "b", {1, 2, 4})});
  graph.set_outputs({graph.add("mul", {y, graph.scalar(DType::kF32, 0.5)}, {}, "y")});
  EXPECT_EQ(rewrite(graph, {"sink_reshapes"}), 1);
  rewrite(graph, {"fold_constants", "fold_batch_norm", "sink_reshapes"});
  EXPECT_EQ(graph.outputs()[0]->producer->op->name, "reshape");
}

TEST_F(SinkReshapes, AResidual) {
  Value* r = graph.input("r", DType::kF32, {kN, 5, 8});
  graph.set_outputs({graph.add("add", {r, product({-1, 5, 8})}, {}, "y")});
  EXPECT_EQ(rewrite(graph, {"sink_reshapes"}), 1);
  EXPECT_EQ(graph.outputs()[0]->producer->op->name, "reshape");
}

TEST_F(SinkReshapes, OperandsOnTheLeft) {
  graph.set_outputs({graph.add("sub", {weights(graph, "b", {8}), product({-1, 5, 8})}, {}, "y")});
  EXPECT_EQ(rewrite(graph, {"sink_reshapes"}), 1);
}

// One number for each row, one for each head, a part of the last axis: not along the last axis.
TEST_F(SinkReshapes, NotAlongOtherAxes) {
  graph.set_outputs({graph.add("add", {product({-1, 5, 8}), weights(graph, "a", {5, 1})}),
                     graph.add("add", {product({-1, 5, 2, 4}), weights(graph, "b", {2, 1})}),
                     graph.add("add", {product({-1, 5, 2, 4}), weights(graph, "c", {4})}),
                     graph.add("add", {product({-1, 5, 4}), weights(graph, "d", {5, 4})})});
  EXPECT_EQ(rewrite(graph, {"sink_reshapes"}), 0);
}

TEST_F(SinkReshapes, NotWhatOthersRead) {
  Value* back = product({-1, 5, 8});
  graph.set_outputs({graph.add("relu", {back}), graph.add("neg", {back})});
  EXPECT_EQ(rewrite(graph, {"sink_reshapes"}), 0);
}

TEST_F(SinkReshapes, NotWhatGrows) {
  Value* wide = weights(graph, "wide", {3, 1, 5, 8});
  graph.set_outputs({graph.add("add", {product({-1, 5, 8}), wide})});
  EXPECT_EQ(rewrite(graph, {"sink_reshapes"}), 0);
}

}  // namespace

}  // namespace anymps::testing
