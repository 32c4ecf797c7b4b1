// SPDX-License-Identifier: Apache-2.0
#include "passes/pass_test.h"

namespace anymps::testing {

namespace {

struct QuantizedElementwise : ::testing::Test {
  Graph graph;

  NamedAttrs steps(double scale, double zero) { return {{"scale", scale}, {"zero_point", zero}}; }
  Value* dequantized(Value* x, double scale, double zero, const std::string& name) {
    return graph.add("dequantize", {x}, steps(scale, zero), name);
  }
  Value* quantized(Value* x, double scale, double zero, const std::string& name) {
    NamedAttrs attrs = steps(scale, zero);
    attrs.push_back({"dtype", DType::kU8});
    return graph.add("quantize", {x}, attrs, name);
  }
};

// What is added to a product's bytes, and what comes out, is said by elementwise ops.
TEST_F(QuantizedElementwise, StepsBesideElementwiseOps) {
  Value* a = dequantized(graph.input("a", DType::kU8, {kN, 5}), 0.02, 7, "a_steps");
  Value* b = dequantized(graph.input("b", DType::kI8, {kN, 5}), 0.03, -3, "b_steps");
  Value* sum = graph.add("relu", {graph.add("add", {a, b}, {}, "sum")}, {}, "rectified");
  graph.set_outputs({quantized(sum, 0.04, 11, "y")});
  EXPECT_EQ(rewrite(graph, {"quantized_elementwise"}), 3);
  EXPECT_EQ(count(graph, "quantize") + count(graph, "dequantize"), 0);
  rewrite(graph, {"fold_constants", "fuse_elementwise"});
  EXPECT_EQ(count(graph, "fused_elementwise"), 1) << nodes_of(graph);
  EXPECT_EQ(graph.node_list().size(), 1u) << nodes_of(graph);
}

TEST_F(QuantizedElementwise, StepsThatNoElementwiseOpReads) {
  // A result, several scales, what a matrix product reads too.
  Value* result = dequantized(graph.input("a", DType::kU8, {kN, 5}), 0.02, 7, "result");
  Value* rows = graph.add(
      "dequantize", {graph.input("r", DType::kI8, {4, 6}), weights(graph, "r_scale", {6}, 0.1, 1)},
      {{"axis", 1}}, "r_steps");
  Value* both = dequantized(graph.input("b", DType::kU8, {kN, 5}), 0.02, 7, "both");
  graph.set_outputs({result, graph.add("relu", {rows}, {}, "rows"),
                     graph.add("relu", {both}, {}, "beside"),
                     graph.add("matmul", {both, weights(graph, "w", {5, 2})}, {}, "product")});
  EXPECT_EQ(rewrite(graph, {"quantized_elementwise"}), 0);
}

// The largest number and numbers that move are found among bytes where these mean the same.
TEST_F(QuantizedElementwise, BytesThatMove) {
  const NamedAttrs pool{{"kernel", Ints{3, 3}}, {"strides", Ints{2, 2}}};
  const auto pooled = [&](const std::string& name, double scale, double zero) {
    Value* x = dequantized(graph.input(name, DType::kU8, {kN, 4, 9, 9}), 0.02, 7, name + "_steps");
    return quantized(graph.add("max_pool", {x}, pool, name + "_pool"), scale, zero, name + "_y");
  };
  Value* same = pooled("same", 0.02, 7);
  Value* flat = dequantized(graph.input("f", DType::kU8, {2, 3, 4}), 0.5, 0, "f_steps");
  flat = graph.add("reshape", {flat}, {{"shape", Ints{2, 12}}}, "flat");
  graph.set_outputs({same, quantized(flat, 0.5, 0, "z"), pooled("scale", 0.03, 7),
                     pooled("zero", 0.02, 8), pooled("negative", -0.02, 7)});
  EXPECT_EQ(rewrite(graph, {"quantized_elementwise"}), 2) << nodes_of(graph);
  EXPECT_EQ(count(graph, "quantize"), 3) << nodes_of(graph);
  EXPECT_EQ(count(graph, "dequantize"), 3) << nodes_of(graph);
  EXPECT_EQ(graph.outputs()[0]->producer->op->name, "max_pool");
  EXPECT_EQ(graph.outputs()[0]->dtype(), DType::kU8);
}

TEST_F(QuantizedElementwise, DriversThatDoNotFuseKeepTheGraph) {
  Value* a = dequantized(graph.input("a", DType::kU8, {kN, 5}), 0.02, 7, "a_steps");
  graph.set_outputs({graph.add("relu", {a}, {}, "y")});
  PassContext context = fusing();
  context.fuses = false;
  EXPECT_EQ(rewrite(graph, {"quantized_elementwise"}, context), 0);
}

}  // namespace

}  // namespace anymps::testing
