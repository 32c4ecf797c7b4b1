// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "passes/pass_test.h"
#include "runtime/executable.h"
#include "support/tensor.h"

namespace anymps::testing {

namespace {

constexpr auto kHalf = DType::kF16;

PassContext slow_at(DTypeSet halves) {
  PassContext context = fusing();
  context.widened = halves;
  return context;
}

// The ops and dtypes after the pass.
std::string widened(Graph& graph, std::vector<Value*> outputs, DTypeSet slow = bit(kHalf)) {
  graph.set_outputs(std::move(outputs));
  rewrite(graph, {"widen_halves"}, slow_at(slow), 4e-3);
  std::string ops;
  for (const auto& node : graph.nodes())
    ops += node->op->name + ":" + name(node->output()->dtype()) + " ";
  return ops;
}

Value* half_weights(Graph& graph, Shape shape) {
  return weights(graph, "w", std::move(shape), -1, 1, kHalf);
}

TEST(WidenHalves, WhatLiesBetweenTwoNodesStaysWide) {
  Graph graph;
  Value* x = graph.input("x", kHalf, {kN, 4});
  Value* product = graph.add("matmul", {x, half_weights(graph, {4, 8})});
  Value* y = graph.add("softmax", {graph.add("relu", {product})});
  EXPECT_EQ(widened(graph, {y}), "cast:f32 cast:f32 matmul:f32 relu:f32 softmax:f32 cast:f16 ");
  EXPECT_EQ(rewrite(graph, {"widen_halves"}, slow_at(bit(kHalf)), 4e-3), 0);
}

TEST(WidenHalves, OtherTypesAndOtherDriversKeepWhatTheyHave) {
  for (const auto& [dtype, slow] :
       {std::pair(DType::kBF16, bit(kHalf)), std::pair(DType::kF32, bit(kHalf)),
        std::pair(kHalf, DTypeSet{0})}) {
    Graph graph;
    Value* x = graph.input("x", dtype, {kN, 4});
    EXPECT_EQ(widened(graph, {graph.add("exp", {x})}, slow),
              std::string("exp:") + name(dtype) + " ");
  }
}

TEST(WidenHalves, MovesFollowWhatIsWideAndStayHalfOtherwise) {
  Graph graph;
  Value* x = graph.input("x", kHalf, {kN, 4});
  Value* turned = graph.add("transpose", {x}, {{"perm", Ints{1, 0}}});
  Value* y = graph.add("reshape", {graph.add("exp", {turned})}, {{"shape", Ints{-1}}});
  EXPECT_EQ(widened(graph, {y}), "transpose:f16 cast:f32 exp:f32 reshape:f32 cast:f16 ");
}

// A result that is also read inside is rounded for whoever asked for it, and not for the next node.
TEST(WidenHalves, ResultsAreRounded) {
  Graph graph;
  Value* x = graph.input("x", kHalf, {kN, 4});
  Value* middle = graph.add("exp", {x});
  Value* y = graph.add("square", {middle});
  EXPECT_EQ(widened(graph, {middle, y}), "cast:f32 exp:f32 cast:f16 square:f32 cast:f16 ");
}

// What looks at the dtype itself sees the rounded value, and so does everybody beside it: a test
// for infinity has to agree with the number it was made of.
TEST(WidenHalves, WhatARoundingTellsApartIsRounded) {
  Graph graph;
  Value* x = graph.input("x", kHalf, {kN, 4});
  Value* y = graph.add("exp", {x});
  Value* finite = graph.add("is_finite", {y});
  Value* next = graph.add("nextafter", {y, x});
  Value* half = graph.add("sqrt", {y});
  EXPECT_EQ(widened(graph, {finite, next, half}),
            "cast:f32 exp:f32 cast:f16 is_finite:bool nextafter:f16 cast:f32 sqrt:f32 cast:f16 ");
}

TEST(WidenHalves, ShapesAreReadOfEitherType) {
  Graph graph;
  Value* x = graph.input("x", kHalf, {kN, 4});
  Value* y = graph.add("exp", {x});
  Value* rows = graph.add("shape", {y});
  Value* z = graph.add("sqrt", {y});
  EXPECT_EQ(widened(graph, {rows, z}), "cast:f32 exp:f32 cast:f16 shape:i64 sqrt:f32 cast:f16 ");
}

Value* erf_gelu(Graph& graph, Value* x, double root) {
  const auto number = [&](double value) { return graph.scalar(x->dtype(), value); };
  Value* erf = graph.add("erf", {graph.add("div", {x, number(root)})});
  Value* gate = graph.add("add", {erf, number(1)});
  return graph.add("mul", {graph.add("mul", {x, gate}), number(0.5)});
}

// A formula is known by its numbers, which a model in halves has rounded.
TEST(WidenHalves, FormulasWithRoundedNumbersAreFound) {
  const std::vector<std::string> passes = {"widen_halves", "fold_constants", "fuse_gelu"};
  for (const DType half : {DType::kF16, DType::kBF16}) {
    Graph graph;
    Value* x = graph.input("x", half, {kN, 4});
    graph.set_outputs({erf_gelu(graph, x, std::sqrt(2))});
    rewrite(graph, passes, slow_at(bit(half)), 2e-2);
    EXPECT_EQ(count(graph, "gelu"), 1) << to_text(graph);
    EXPECT_EQ(count(graph, "erf"), 0);
  }
  // The same number in a graph of f32, and one that no half has beside halves, are meant so.
  for (const double root : {1.4140625, 1.4145}) {
    Graph graph;
    Value* x = graph.input("x", DType::kF32, {kN, 4});
    Value* other = graph.input("other", kHalf, {kN, 4});
    std::vector<Value*> outputs = {erf_gelu(graph, x, root)};
    if (root != 1.4140625) outputs.push_back(graph.add("mul", {other, graph.scalar(kHalf, 3)}));
    graph.set_outputs(outputs);
    rewrite(graph, passes, slow_at(bit(kHalf)), 4e-3);
    EXPECT_EQ(count(graph, "gelu"), 0) << to_text(graph);
  }
}

// What a half's least number rules out leaves nothing of a score in f32 either, even where it rules
// out all.
TEST(WidenHalves, MasksOfHalvesRuleOut) {
  Graph graph;
  Value* q = graph.input("q", kHalf, {Dim(1), Dim(2), Dim(3), Dim(4)});
  Value* k = graph.input("k", kHalf, {Dim(1), Dim(2), Dim(5), Dim(4)});
  Value* v = graph.input("v", kHalf, {Dim(1), Dim(2), Dim(5), Dim(4)});
  Value* never =
      graph.add("greater", {graph.input("m", kHalf, {Dim(3), Dim(5)}), graph.scalar(kHalf, 100)});
  Value* scores = graph.add("matmul", {q, k}, {{"transpose_b", true}});
  scores = graph.add("where", {never, scores, graph.scalar(kHalf, -65504)});
  graph.set_outputs({graph.add("matmul", {graph.add("softmax", {scores}), v})});
  rewrite(graph, {"widen_halves", "fold_constants", "fuse_attention"}, slow_at(bit(kHalf)), 4e-3);
  EXPECT_EQ(count(graph, "sdpa"), 1) << to_text(graph);
}

// The whole engine: a sum that leaves the half type's range comes back, and what is too large for a
// result is infinite as ever.
TEST(WidenHalves, TheCpuComputesHalvesInF32) {
  Graph graph;
  Value* x = graph.input("x", kHalf, {Dim(2)});
  Value* large = graph.add("mul", {x, x});
  Value* y = graph.add("sqrt", {large});
  graph.set_outputs({large, y});
  const DevicePtr device = Device::get("cpu");
  Executable executable(device, graph);
  const TestTensor feed(kHalf, {2}, {2, 1000});
  std::vector<Tensor> results;
  executable.run({device->from_host(feed.desc(), feed.ptr())}, results);
  TestTensor first(kHalf, {2}), second(kHalf, {2});
  device->to_host(results[0], first.ptr());
  device->to_host(results[1], second.ptr());
  EXPECT_EQ(first.values(), (Row{4, kInf}));
  EXPECT_EQ(second.values(), (Row{2, 1000}));
}

}  // namespace

}  // namespace anymps::testing
