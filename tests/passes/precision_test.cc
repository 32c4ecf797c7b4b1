// SPDX-License-Identifier: Apache-2.0
#include "passes/precision.h"

#include <cmath>
#include <tuple>

#include "passes/pass_test.h"
#include "runtime/executable.h"

namespace anymps::testing {

namespace {

Value* ramp_weights(Graph& graph, Shape shape, float first) {
  std::vector<float> elements(static_cast<size_t>(element_count(shape)));
  for (size_t i = 0; i < elements.size(); ++i) elements[i] = first + static_cast<float>(i % 3);
  return graph.constant(
      Constant::copy(DType::kF32, std::move(shape), std::as_bytes(std::span(elements))));
}

std::string lowered(Graph& graph, Value* y, DType half) {
  graph.rename(y, "y");
  graph.set_outputs({y});
  auto made = with_precision(graph, half);
  verify(*made);
  std::string ops;
  for (const auto& node : made->nodes())
    ops += node->op->name + ":" + name(node->output()->dtype()) + " ";
  EXPECT_EQ(made->outputs()[0]->name, "y");
  EXPECT_EQ(made->outputs()[0]->dtype(), y->dtype());
  EXPECT_EQ(made->inputs()[0]->dtype(), DType::kF32);
  return ops;
}

TEST(Precision, ProductsAndWhatFollowsThem) {
  Graph graph;
  Value* x = graph.input("x", DType::kF32, {kN, 4});
  Value* product = graph.add("matmul", {x, ramp_weights(graph, {4, 8}, 1)});
  Value* relu = graph.add("relu", {graph.add("add", {product, ramp_weights(graph, {8}, 0)})});
  EXPECT_EQ(lowered(graph, relu, DType::kBF16),
            "cast:bf16 cast:bf16 matmul:bf16 cast:bf16 add:bf16 relu:bf16 cast:f32 ");
}

TEST(Precision, SoftmaxAndSumsStay) {
  Graph graph;
  Value* x = graph.input("x", DType::kF32, {kN, 4});
  Value* product = graph.add("matmul", {x, ramp_weights(graph, {4, 8}, 1)});
  EXPECT_EQ(lowered(graph, graph.add("softmax", {product}), DType::kF16),
            "cast:f16 cast:f16 matmul:f16 cast:f32 softmax:f32 ");
}

TEST(Precision, MovesAndPoolsStayInTheHalfType) {
  Graph graph;
  Value* x = graph.input("x", DType::kF32, {Dim(1), Dim(2), Dim(4), Dim(4)});
  Value* product = graph.add("conv", {x, ramp_weights(graph, {3, 2, 1, 1}, 1)});
  Value* picked = graph.add("gather", {product, graph.ints({2, 0})}, {{"axis", 1}});
  Value* pooled = graph.add("avg_pool", {picked}, {{"kernel", std::vector<int64_t>{2, 2}}});
  Value* turned = graph.add("transpose", {pooled}, {{"perm", std::vector<int64_t>{0, 1, 3, 2}}});
  EXPECT_EQ(lowered(graph, turned, DType::kBF16),
            "cast:bf16 cast:bf16 conv:bf16 gather:bf16 avg_pool:bf16 transpose:bf16 cast:f32 ");
}

TEST(Precision, SteepFunctionsAndCastsDoNot) {
  for (const auto& [op, attrs, ends] :
       {std::tuple("exp", NamedAttrs{}, "cast:f32 exp:f32 "),
        std::tuple("cast", NamedAttrs{{"dtype", DType::kI32}}, "cast:f32 cast:i32 ")}) {
    Graph graph;
    Value* x = graph.input("x", DType::kF32, {kN, 4});
    Value* product = graph.add("matmul", {x, ramp_weights(graph, {4, 8}, 1)});
    EXPECT_EQ(lowered(graph, graph.add(op, {product}, attrs), DType::kF16),
              std::string("cast:f16 cast:f16 matmul:f16 ") + ends);
  }
}

TEST(Precision, FactsOfTheRecordsFit) {
  for (const Op* op : all_ops()) {
    EXPECT_TRUE(!op->is(kSteep) || op->is(kElementwise)) << op->name;
    EXPECT_TRUE(!op->is(kViewLike) || op->is(kMoves)) << op->name;
    EXPECT_FALSE(op->is(kStaysHalf) && (op->is(kElementwise) || op->is(kMoves))) << op->name;
    EXPECT_FALSE(op->is(kProduct) && (op->is(kElementwise) || op->is(kMoves))) << op->name;
  }
}

TEST(Precision, FloatsOfTheRestDoNotBecomeHalf) {
  Graph graph;
  Value* x = graph.input("x", DType::kF32, {kN, 4});
  EXPECT_EQ(lowered(graph, graph.add("add", {graph.add("relu", {x}), x}), DType::kF16),
            "relu:f32 add:f32 ");
}

TEST(Precision, NumbersThatF16DoesNotHave) {
  Graph graph;
  Value* x = graph.input("x", DType::kF32, {kN, 4});
  Value* product = graph.add("matmul", {x, ramp_weights(graph, {4, 8}, 1)});
  Value* y = graph.add("add", {product, graph.scalar(DType::kF32, -1e9)});
  EXPECT_EQ(lowered(graph, y, DType::kF16), "cast:f16 cast:f16 matmul:f16 cast:f32 add:f32 ");
  EXPECT_EQ(lowered(graph, y, DType::kBF16),
            "cast:bf16 cast:bf16 matmul:bf16 cast:bf16 add:bf16 cast:f32 ");
}

TEST(Precision, OtherTypesAreRefused) {
  Graph graph;
  graph.set_outputs({graph.add("relu", {graph.input("x", DType::kF32, {kN, 4})})});
  EXPECT_THROW(with_precision(graph, DType::kF64), Error);
  EXPECT_THROW(with_precision(graph, DType::kI8), Error);
}

// The numbers are near those of f32, and not the same: it did happen.
TEST(Precision, Runs) {
  Graph graph;
  Value* x = graph.input("x", DType::kF32, {Dim(2), Dim(3)});
  Value* product = graph.add("matmul", {x, ramp_weights(graph, {3, 2}, 0.1f)});
  graph.set_outputs({graph.add("add", {product, graph.scalar(DType::kF32, 0.3)})});
  const DevicePtr device = Device::get("cpu");
  const float in[6] = {0.1f, 0.2f, 0.3f, -0.4f, 0.5f, 1000.6f};
  const auto run = [&](const Graph& what) {
    Executable executable(device, what);
    std::vector<Tensor> results;
    executable.run({device->from_host(TensorDesc(DType::kF32, {2, 3}), in)}, results);
    std::vector<float> out(4);
    device->to_host(results[0], out.data());
    return out;
  };
  const std::vector<float> exact = run(graph);
  for (const auto& [half, tolerance] :
       {std::pair(DType::kF16, 2e-3f), std::pair(DType::kBF16, 2e-2f)}) {
    const std::vector<float> near = run(*with_precision(graph, half));
    EXPECT_NE(near, exact);
    for (size_t i = 0; i < 4; ++i)
      EXPECT_NEAR(near[i], exact[i], tolerance * std::max(1.0f, std::fabs(exact[i])));
  }
}

}  // namespace

}  // namespace anymps::testing
