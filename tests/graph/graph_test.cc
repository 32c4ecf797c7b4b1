// SPDX-License-Identifier: Apache-2.0
// Building, rewriting and verifying graphs.
#include "graph/graph.h"

#include <gtest/gtest.h>

#include "graph/fingerprint.h"
#include "graph/printer.h"
#include "support/tensor.h"

namespace anymps {
namespace {

using testing::error_of;

TEST(Graph, InfersWhileBuilding) {
  Graph graph;
  Value* x = graph.input("x", DType::kF32, {Dim::symbol("N"), 3});
  Value* y =
      graph.add("matmul", {x, graph.constant(Constant::of<float>({3, 2}, {1, 2, 3, 4, 5, 6}))});
  EXPECT_EQ(to_string(y->type), "f32[N, 2]");
}

TEST(Graph, ErrorsNameOpAndNode) {
  Graph graph;
  Value* x = graph.input("x", DType::kF32, {2, 3});
  EXPECT_EQ(error_of([&] {
              graph.add("softmax", {x}, {{"axis", 4}}, "attn/softmax");
            }),
            "[softmax] axis 4 is out of range for rank 2 (node \"attn/softmax\")");
  EXPECT_NE(error_of([&] {
              graph.add("softmax", {x}, {{"axes", 1}}, "s");
            }).find("no attribute 'axes'"),
            std::string::npos);
  EXPECT_NE(error_of([&] { graph.add("sofmax", {x}); }).find("near: softmax"), std::string::npos);
  EXPECT_NE(error_of([&] { graph.add("add", {x}, {}, "a"); }).find("input 'b' is missing"),
            std::string::npos);
  EXPECT_NE(error_of([&] {
              graph.add("add", {x, graph.ints({1, 2, 3})}, {}, "a");
            }).find("same dtype"),
            std::string::npos);
  EXPECT_NE(error_of([&] { graph.input("x", DType::kF32, {}); }).find("two values"),
            std::string::npos);
}

TEST(Graph, ReplacingAnOutputKeepsItsName) {
  Graph graph;
  Value* x = graph.input("x", DType::kF32, {2});
  Value* y = graph.add("relu", {x}, {}, "result");
  graph.set_outputs({y});
  Value* z = graph.add("abs", {x});
  graph.replace_uses(y, z);
  EXPECT_EQ(graph.outputs()[0], z);
  EXPECT_EQ(z->name, "result");
  EXPECT_EQ(graph.find_value("result"), z);
  EXPECT_EQ(graph.erase_dead(), 1u);
  verify(graph);
}

TEST(Graph, ErasesWhatNoOutputNeeds) {
  Graph graph;
  Value* x = graph.input("x", DType::kF32, {2});
  Value* y = graph.add("relu", {x});
  graph.add("exp", {graph.add("add", {y, graph.scalar(DType::kF32, 1)})});
  graph.set_outputs({y});
  EXPECT_EQ(graph.erase_dead(), 2u);
  EXPECT_EQ(graph.values().size(), 2u);
}

TEST(Graph, RefusesToEraseWhatIsUsed) {
  Graph graph;
  Value* x = graph.input("x", DType::kF32, {2});
  Value* y = graph.add("relu", {x}, {}, "used");
  graph.set_outputs({y});
  EXPECT_NE(error_of([&] { graph.erase(y->producer); }).find("still used"), std::string::npos);
}

TEST(Graph, SortsAndFindsCycles) {
  Graph graph;
  Value* x = graph.input("x", DType::kF32, {2});
  Value* a = graph.add("relu", {x}, {}, "a");
  Value* b = graph.add("exp", {x}, {}, "b");
  graph.set_input(a->producer, 0, b);  // a now uses b, which comes later
  EXPECT_NE(error_of([&] { verify(graph); }).find("before it is made"), std::string::npos);
  graph.sort();
  graph.set_outputs({a});
  verify(graph);
  graph.set_input(b->producer, 0, a);
  const std::string error = error_of([&] { graph.sort(); });
  EXPECT_NE(error.find("cycle"), std::string::npos);
  EXPECT_NE(error.find("b, a"), std::string::npos) << error;
}

TEST(Graph, CloneIsIndependentButSharesConstants) {
  Graph graph;
  Value* x = graph.input("x", DType::kF32, {2});
  Value* c = graph.constant(Constant::of<float>({2}, {1, 2}), "c");
  graph.set_outputs({graph.add("add", {x, c})});
  auto copy = graph.clone();
  EXPECT_EQ(to_text(*copy), to_text(graph));
  EXPECT_EQ(copy->find_value("c")->constant, c->constant);
  copy->set_outputs({copy->add("neg", {copy->outputs()[0]})});
  EXPECT_EQ(graph.node_count(), 1u);
}

TEST(Verify, CatchesAPassThatLies) {
  Graph graph;
  Value* x = graph.input("x", DType::kF32, {2});
  Value* y = graph.add("relu", {x}, {}, "r");
  graph.set_outputs({y});
  y->type.shape = {3};
  const std::string error = error_of([&] { verify(graph, "bad_pass"); });
  EXPECT_NE(error.find("'r' says f32[3], inference says f32[2]"), std::string::npos) << error;
  EXPECT_NE(error.find("after pass 'bad_pass'"), std::string::npos) << error;
}

TEST(Fingerprint, TellsGraphsApart) {
  auto make = [](double axis, ConstantPtr constant) {
    auto graph = std::make_unique<Graph>();
    Value* x = graph->input("x", DType::kF32, {2, 2});
    Value* y = graph->add("softmax", {x}, {{"axis", static_cast<int64_t>(axis)}});
    graph->set_outputs({graph->add("add", {y, graph->constant(std::move(constant), "c")})});
    return fingerprint(*graph);
  };
  auto c = Constant::of<float>({2}, {1, 2}), d = Constant::of<float>({2}, {1, 3});
  EXPECT_EQ(make(0, c), make(0, c));
  EXPECT_NE(make(0, c), make(1, c));
  EXPECT_NE(make(0, c), make(0, d));
}

TEST(Constant, LazyOnesAreMadeOnDemandAndShared) {
  int made = 0;
  auto constant = Constant::lazy(DType::kF32, {2}, [&](std::byte* out) {
    ++made;
    const float values[2] = {1, 2};
    std::memcpy(out, values, sizeof(values));
  });
  EXPECT_EQ(made, 0);
  {
    const auto a = constant->data(), b = constant->data();
    EXPECT_EQ(made, 1);
    EXPECT_EQ(a, b);
  }
  constant->data();
  EXPECT_EQ(made, 2);
}

TEST(Constant, ChecksItsSize) {
  EXPECT_NE(error_of([] {
              Constant::of<float>({3}, {1, 2});
            }).find("needs 12 bytes, 8 given"),
            std::string::npos);
}

// Equal symbols are equal extents, so two nodes must not make the same one.
TEST(Graph, ExtentsThatOnlyRunningTellsAreDifferentForEachNode) {
  Graph graph;
  Value* limit = graph.input("limit", DType::kF32, {});
  Value* zero = graph.scalar(DType::kF32, 0);
  Value* one = graph.scalar(DType::kF32, 1);
  Value* a = graph.add("range", {zero, limit, one});
  Value* b = graph.add("range", {one, limit, one});
  ASSERT_FALSE(a->shape()[0].known());
  EXPECT_FALSE(a->shape()[0] == b->shape()[0]);
  graph.infer_again();
  EXPECT_FALSE(a->shape()[0] == b->shape()[0]);
}

}  // namespace
}  // namespace anymps
