// SPDX-License-Identifier: Apache-2.0
#include "memory/refreshable.h"
#include "passes/pass_test.h"
#include "semantics/fused_activation.h"

namespace anymps::testing {

namespace {

struct QuantizeWeights : ::testing::Test {
  Graph graph;
  Value* x = graph.input("x", DType::kF32, {kN, 5, 128});

  // The numbers move by no more than rounding the weights explains: sums of 128 products of
  // numbers up to 1, of which each is off by up to 1/254 or 1/14.
  int quantize(int bits, std::vector<std::string> passes = {}) {
    PassContext context = fusing();
    context.weight_bits = bits;
    passes.emplace_back("quantize_weights");
    return rewrite(graph, passes, context, bits == 8 ? 0.3 : 2.5);
  }
};

TEST_F(QuantizeWeights, AColumnHasAScale) {
  graph.set_outputs({graph.add("matmul", {x, weights(graph, "w", {128, 160})}, {}, "y")});
  EXPECT_EQ(quantize(8), 1);
  EXPECT_EQ(nodes_of(graph), R"(
%y: f32[N, 5, 160] = weight_only_matmul(%x, %w.few, %w.scales)
)");
  const Node& node = *graph.outputs()[0]->producer;
  EXPECT_EQ(node.input(1)->dtype(), DType::kI8);
  EXPECT_EQ(node.input(1)->constant->shape(), (Shape{160, 128}));
  EXPECT_EQ(node.input(2)->constant->shape(), (Shape{160}));
}

TEST_F(QuantizeWeights, FourBitsHaveAScaleFor32) {
  graph.set_outputs(
      {graph.add("matmul", {x, weights(graph, "w", {160, 128})}, {{"transpose_b", true}}, "y")});
  EXPECT_EQ(quantize(4), 1);
  EXPECT_EQ(nodes_of(graph), R"(
%y: f32[N, 5, 160] = weight_only_matmul(%x, %w.few, %w.scales) {bits=4, group=32}
)");
  const Node& node = *graph.outputs()[0]->producer;
  EXPECT_EQ(node.input(1)->dtype(), DType::kU8);
  EXPECT_EQ(node.input(1)->constant->shape(), (Shape{160, 64}));
  EXPECT_EQ(node.input(2)->constant->shape(), (Shape{4, 160}));
}

TEST_F(QuantizeWeights, FourBitsThatDoNotFillGroupsAreEight) {
  Value* odd = graph.input("odd", DType::kF32, {kN, 104});
  graph.set_outputs({graph.add("matmul", {odd, weights(graph, "w", {104, 160})}, {}, "y")});
  EXPECT_EQ(quantize(4), 1);
  EXPECT_EQ(graph.outputs()[0]->producer->attrs.i("bits"), 8);
}

TEST_F(QuantizeWeights, WhatWasFusedComesAfter) {
  Value* r = graph.input("r", DType::kF32, {kN, 5, 160});
  Value* y = graph.add("matmul", {x, weights(graph, "w", {128, 160})}, {}, "product");
  y = graph.add("mul", {y, graph.scalar(DType::kF32, 0.125)});
  y = graph.add("add", {y, weights(graph, "bias", {160})});
  y = graph.add("add", {y, r});
  graph.set_outputs({graph.add("gelu", {y}, {}, "y")});
  EXPECT_EQ(quantize(8, {"fuse_matmul"}), 5);
  for (const char* op : {"weight_only_matmul", "mul", "gelu"}) EXPECT_EQ(count(graph, op), 1) << op;
  EXPECT_EQ(count(graph, "add"), 2);
  EXPECT_EQ(count(graph, "matmul"), 0);
}

TEST_F(QuantizeWeights, EveryActivation) {
  for (const std::string& activation : activation_choices()) {
    Graph graph;
    Value* x = graph.input("x", DType::kF32, {kN, 128});
    graph.set_outputs({graph.add("matmul", {x, weights(graph, "w", {128, 160}, -0.1, 0.1)},
                                 {{"activation", activation},
                                  {"act_alpha", activation == "hard_sigmoid" ? 0.2 : 0.3},
                                  {"act_beta", 0.6}},
                                 "y")});
    PassContext context = fusing();
    context.weight_bits = 8;
    EXPECT_EQ(rewrite(graph, {"quantize_weights"}, context, 0.03), 1) << activation;
    EXPECT_EQ(graph.node_count(), activation == "none" ? 1u : 2u) << activation;
  }
}

TEST_F(QuantizeWeights, TheWholePipeline) {
  Value* w = weights(graph, "w", {160, 128});
  Value* turned = graph.add("transpose", {w}, {{"perm", Ints{1, 0}}});
  Value* y = graph.add("add", {graph.add("matmul", {x, turned}), weights(graph, "b", {160})});
  graph.set_outputs({graph.add("relu", {y}, {}, "y")});
  PassContext context = fusing();
  context.weight_bits = 8;
  rewrite(graph, {}, context, 0.3);
  EXPECT_EQ(count(graph, "weight_only_matmul"), 1);
  EXPECT_EQ(count(graph, "fused_elementwise"), 1);
  EXPECT_EQ(graph.node_count(), 2u);
}

TEST_F(QuantizeWeights, AMatrixOfSeveralIsStoredOnce) {
  Value* w = weights(graph, "w", {128, 160});
  Value* z = graph.input("z", DType::kF32, {3, 128});
  graph.set_outputs({graph.add("matmul", {x, w}, {}, "y"), graph.add("matmul", {z, w}, {}, "v")});
  EXPECT_EQ(quantize(8), 2);
  const auto stored = [&](size_t i) { return graph.outputs()[i]->producer->input(1)->constant; };
  EXPECT_EQ(stored(0), stored(1));
}

TEST_F(QuantizeWeights, ATableAndTheProductWithItShareTheirBits) {
  Value* table = weights(graph, "table", {200, 128});
  Value* indices = graph.input("indices", DType::kI64, {kN, 3});
  Value* picked = graph.add("gather", {table, indices}, {}, "picked");
  graph.set_outputs(
      {picked, graph.add("matmul", {picked, table}, {{"transpose_b", true}}, "scores")});
  EXPECT_EQ(quantize(8), 2);
  EXPECT_EQ(count(graph, "gather"), 2);
  EXPECT_EQ(count(graph, "cast"), 1);
  std::vector<ConstantPtr> bytes;
  for (const auto& node : graph.nodes())
    for (const Value* value : node->inputs)
      if (value->is_constant() && value->dtype() == DType::kI8) bytes.push_back(value->constant);
  ASSERT_EQ(bytes.size(), 2u);
  EXPECT_EQ(bytes[0], bytes[1]);
}

TEST_F(QuantizeWeights, TablesAreOfEightBits) {
  Value* indices = graph.input("indices", DType::kI64, {kN, 3});
  graph.set_outputs(
      {graph.add("gather", {weights(graph, "table", {200, 128}), indices}, {{"axis", -2}}, "y")});
  PassContext context = fusing();
  context.weight_bits = 4;
  EXPECT_EQ(rewrite(graph, {"quantize_weights"}, context, 0.5 / 127), 1);
}

TEST_F(QuantizeWeights, OnlyIfAskedFor) {
  graph.set_outputs({graph.add("matmul", {x, weights(graph, "w", {128, 160})}, {}, "y")});
  EXPECT_EQ(rewrite(graph, {"quantize_weights"}), 0);
}

TEST_F(QuantizeWeights, WhatIsSmallOrNoConstantMatrixStays) {
  Value* fed = graph.input("fed", DType::kF32, {128, 160});
  Value* wide = graph.input("wide", DType::kF64, {2, 128});
  Value* turned = graph.input("turned", DType::kF32, {128, 2});
  Value* shallow = graph.input("shallow", DType::kF32, {2, 16});
  Value* indices = graph.input("indices", DType::kI64, {kN});
  const auto memory = std::make_shared<std::vector<float>>(128 * 160, 0.5f);
  Value* changing = graph.constant(
      refreshable_constant(TensorDesc(DType::kF32, {128, 160}), memory->data(), memory),
      "changing");
  std::vector<float> broken(128 * 160, 1.0f);
  broken[777] = std::numeric_limits<float>::infinity();
  Value* w = weights(graph, "w", {128, 160});
  std::vector<Value*> outputs;
  const auto add = [&](const char* op, std::vector<Value*> inputs, const NamedAttrs& attrs = {}) {
    outputs.push_back(
        graph.add(op, std::move(inputs), attrs, "y" + std::to_string(outputs.size())));
  };
  add("matmul", {x, fed});
  add("matmul", {x, weights(graph, "small", {128, 100})});
  add("matmul", {x, weights(graph, "batch", {1, 128, 160})});
  add("matmul", {x, changing});
  add("matmul", {wide, weights(graph, "doubles", {128, 160}, -1, 1, DType::kF64)});
  add("matmul", {turned, w}, {{"transpose_a", true}});
  add("matmul", {shallow, weights(graph, "flat", {16, 2000})});
  add("gather", {w, indices}, {{"axis", 1}});
  add("gather", {weights(graph, "thin", {2000, 16}), indices});
  add("gather", {weights(graph, "cube", {4, 64, 128}), indices});
  graph.set_outputs(outputs);
  EXPECT_EQ(quantize(8), 0);
  // Not compared: the numbers of infinite weights are no numbers.
  Value* y = graph.add("matmul", {x, graph.constant(Constant::of<float>({128, 160}, broken))}, {},
                       "infinite");
  graph.set_outputs({y});
  PassContext context = fusing();
  context.weight_bits = 8;
  for (const Pass& pass : all_passes()) {
    if (pass.name == "quantize_weights") {
      EXPECT_EQ(pass.run(graph, context), 0);
    }
  }
}

}  // namespace

}  // namespace anymps::testing
