// SPDX-License-Identifier: Apache-2.0
#include "passes/pass_test.h"

namespace anymps::testing {

namespace {

struct QuantizedProducts : ::testing::Test {
  Graph graph;

  Value* number(double value) { return graph.scalar(DType::kF32, value); }
  Value* zero(DType dtype, double value) { return graph.scalar(dtype, value); }
  Value* quantized(Value* x, double scale, double point, const std::string& name,
                   DType dtype = DType::kU8) {
    return graph.add("quantize", {x, number(scale), zero(dtype, point)}, {{"dtype", dtype}}, name);
  }
  Value* dequantized(Value* x, double scale, double point, const std::string& name) {
    return graph.add("dequantize", {x, number(scale), zero(x->dtype(), point)}, {}, name);
  }
  // A float input that was quantized on its way.
  Value* input(const std::string& name, Dims shape, double scale = 0.0157) {
    Value* x = graph.input(name, DType::kF32, std::move(shape));
    return dequantized(quantized(x, scale, 127, name + "_bytes"), scale, 127, name + "_steps");
  }
  // Weights with a scale for each place on `axis`.
  Value* bytes(const std::string& name, Shape shape, int64_t axis) {
    const Shape channels{shape[static_cast<size_t>(axis)]};
    Value* w = weights(graph, name, std::move(shape), -127, 127, DType::kI8);
    return graph.add("dequantize",
                     {w, weights(graph, name + "_scale", channels, 0.001, 0.01),
                      weights(graph, name + "_zero", channels, 0, 0, DType::kI8)},
                     {{"axis", axis}}, name + "_steps");
  }
};

TEST_F(QuantizedProducts, MatmulWithBiasActivationAndBytes) {
  Value* y = graph.add("matmul", {input("x", {kN, 5, 32}), bytes("w", {32, 6}, 1)}, {}, "product");
  y = graph.add("add", {weights(graph, "bias", {6}), y}, {}, "biased");
  y = graph.add("relu", {y}, {}, "rectified");
  y = quantized(y, 0.023, 3, "y_bytes");
  graph.set_outputs({dequantized(y, 0.023, 3, "y")});
  EXPECT_EQ(rewrite(graph, {"quantized_products"}), 4);
  EXPECT_EQ(count(graph, "quantized_matmul"), 1);
  EXPECT_EQ(count(graph, "matmul") + count(graph, "add") + count(graph, "relu"), 0);
  EXPECT_EQ(count(graph, "quantize"), 1) << "of x";
  EXPECT_EQ(count(graph, "dequantize"), 1) << "of y";
}

TEST_F(QuantizedProducts, TransposedWeights) {
  Value* y =
      graph.add("matmul", {input("x", {kN, 32}), bytes("w", {6, 32}, 0), weights(graph, "b", {6})},
                {{"transpose_b", true}}, "y");
  graph.set_outputs({y});
  EXPECT_EQ(rewrite(graph, {"quantized_products"}), 1);
  EXPECT_EQ(count(graph, "quantized_matmul"), 1);
}

TEST_F(QuantizedProducts, BothOperandsOfTheRun) {
  graph.set_outputs(
      {graph.add("matmul", {input("a", {2, 5, 8}), input("b", {2, 8, 3}, 0.02)}, {}, "y")});
  EXPECT_EQ(rewrite(graph, {"quantized_products"}), 1);
  EXPECT_EQ(count(graph, "quantized_matmul"), 1);
}

TEST_F(QuantizedProducts, Convolution) {
  Value* y = graph.add("conv", {input("x", {kN, 3, 9, 9}), bytes("w", {4, 3, 3, 3}, 0)},
                       {{"strides", Ints{2, 2}}, {"pads", Ints{1, 1, 1, 1}}}, "conv");
  y = graph.add("add", {y, weights(graph, "bias", {1, 4, 1, 1})}, {}, "biased");
  y = graph.add("clamp", {y}, {{"min", 0.0}, {"max", 6.0}}, "clamped");
  graph.set_outputs({dequantized(quantized(y, 0.0231, 0, "y_bytes"), 0.0231, 0, "y")});
  EXPECT_EQ(rewrite(graph, {"quantized_products"}), 4);
  EXPECT_EQ(count(graph, "quantized_conv"), 1);
  EXPECT_EQ(count(graph, "conv") + count(graph, "add") + count(graph, "clamp"), 0);
}

TEST_F(QuantizedProducts, IntegerSumsThatAreScaled) {
  Value* x = graph.input("x", DType::kF32, {5, 32});
  const std::vector<Value*> steps =
      graph.add_node(get_op("dynamic_quantize"), {x}, {}, "dynamic", 3)->outputs;
  Value* y = graph.add("matmul_integer",
                       {steps[0], weights(graph, "w", {32, 6}, -127, 127, DType::kI8), steps[2]},
                       {}, "sums");
  y = graph.add("cast", {y}, {{"dtype", DType::kF32}}, "numbers");
  y = graph.add("mul", {y, graph.add("mul", {steps[1], weights(graph, "s", {6}, 0.001, 0.01)})}, {},
                "scaled");
  graph.set_outputs({graph.add("add", {y, weights(graph, "b", {6})}, {}, "y")});
  EXPECT_EQ(rewrite(graph, {"quantized_products"}), 2);
  EXPECT_EQ(count(graph, "quantized_matmul"), 1);
  EXPECT_EQ(count(graph, "cast") + count(graph, "add"), 0);
}

TEST_F(QuantizedProducts, SumsOfAConvolutionWithIntegersAdded) {
  Value* x = graph.input("x", DType::kU8, {1, 3, 7, 7});
  Value* y =
      graph.add("conv_integer",
                {x, weights(graph, "w", {4, 3, 3, 3}, -127, 127, DType::kI8), zero(DType::kU8, 1)},
                {}, "sums");
  y = graph.add("add", {y, weights(graph, "b", {1, 4, 1, 1}, -500, 500, DType::kI32)}, {},
                "biased");
  Value* cast = graph.add("cast", {y}, {{"dtype", DType::kF32}}, "numbers");
  graph.set_outputs({graph.add("mul", {cast, number(0.0013)}, {}, "y")});
  EXPECT_EQ(rewrite(graph, {"quantized_products"}), 1);
  EXPECT_EQ(count(graph, "quantized_conv"), 1);
}

TEST_F(QuantizedProducts, SumsThatAreRequantized) {
  Value* x = graph.input("x", DType::kU8, {1, 3, 7, 7});
  Value* y = graph.add("conv_integer",
                       {x, weights(graph, "w", {4, 3, 3, 3}, -127, 127, DType::kI8)}, {}, "sums");
  y = graph.add("requantize", {y, weights(graph, "s", {4}, 0.011, 0.02), zero(DType::kU8, 99)},
                {{"dtype", DType::kU8}, {"axis", 1}}, "y");
  graph.set_outputs({y});
  EXPECT_EQ(rewrite(graph, {"quantized_products"}), 1);
  EXPECT_EQ(nodes_of(graph).find("requantize"), std::string::npos);
}

TEST_F(QuantizedProducts, LeavesAlone) {
  // A scale for each row of a sum, what others read, weights that were never quantized.
  Value* rows = graph.add("dequantize",
                          {weights(graph, "r", {32, 6}, -127, 127, DType::kI8),
                           weights(graph, "r_scale", {32}, 0.001, 0.01)},
                          {{"axis", 0}}, "r_steps");
  Value* x = input("x", {kN, 32});
  Value* plain = graph.add("matmul", {x, weights(graph, "w", {32, 6})}, {}, "plain");
  graph.set_outputs({graph.add("matmul", {x, rows}, {}, "y"), plain});
  EXPECT_EQ(rewrite(graph, {"quantized_products"}), 0);

  Value* product = graph.add("matmul", {x, bytes("v", {32, 6}, 1)}, {}, "product");
  graph.set_outputs({product, graph.add("relu", {product}, {}, "z")});
  EXPECT_EQ(rewrite(graph, {"quantized_products"}), 1);
  EXPECT_EQ(count(graph, "relu"), 1);
}

TEST_F(QuantizedProducts, DriversThatDoNotFuseKeepTheGraph) {
  graph.set_outputs({graph.add("matmul", {input("x", {kN, 32}), bytes("w", {32, 6}, 1)}, {}, "y")});
  PassContext context = fusing();
  context.fuses = false;
  EXPECT_EQ(rewrite(graph, {"quantized_products"}, context), 0);
}

}  // namespace

}  // namespace anymps::testing
