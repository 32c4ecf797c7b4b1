// SPDX-License-Identifier: Apache-2.0
// What rounds of a loop share: memory of the index, plans of the body.
#include <gtest/gtest.h>

#include <thread>

#include "runtime/executable.h"
#include "support/device_tensor.h"
#include "support/graph_parts.h"
#include "support/island_driver.h"

namespace anymps {
namespace {

using testing::body;
using testing::elements;
using testing::GraphPtr;
using testing::kNumber;
using testing::kTruth;

class LoopRoundsOn : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    register_island_driver();
    device_ = Device::get(GetParam());
  }
  DevicePtr device_;
};

// An interpreted body hands the index itself on: it must not be written over in the next round.
TEST_P(LoopRoundsOn, AnIndexMayOutliveItsRound) {
  for (const bool planned : {false, true}) {
    Graph graph;
    Value* trips = graph.input("trips", kNumber);
    auto loop = std::make_shared<Graph>();
    Value* i = loop->input("i", kNumber);
    Value* go = loop->input("go", kTruth);
    Value* last = loop->input("last", kNumber);
    Value* out = i;
    if (!planned) {
      auto yes = std::make_shared<Graph>(), no = std::make_shared<Graph>();
      for (const GraphPtr& branch : {yes, no}) branch->set_outputs({branch->input("i", kNumber)});
      out = loop->add_node(get_op("if_else"), {go, i},
                           {body("then_branch", yes), body("else_branch", no)}, "same", 1)
                ->output();
    }
    loop->set_outputs({go, out, last, i});
    Value* start = graph.constant(Constant::of<int64_t>({}, {-1}));
    Node* node = graph.add_node(get_op("loop"), {trips, nullptr, start},
                                {body("body", loop), {"carried", 1}}, "loop", 3);
    graph.set_outputs(node->outputs);
    const int64_t count = 4;
    std::vector<Tensor> results;
    Executable(device_, graph, {.check = true})
        .run({device_->from_host(TensorDesc(DType::kI64, {}), &count)}, results);
    EXPECT_EQ(elements<int64_t>(*device_, results[0]), (std::vector<int64_t>{3}));
    EXPECT_EQ(elements<int64_t>(*device_, results[1]), (std::vector<int64_t>{-1, 0, 1, 2}));
    EXPECT_EQ(elements<int64_t>(*device_, results[2]), (std::vector<int64_t>{0, 1, 2, 3}));
  }
}

// s = concat(s, s) + index: another plan in every round, and again those of the run before.
std::unique_ptr<Graph> growing() {
  auto graph = std::make_unique<Graph>();
  const ValueType vector{DType::kI64, true, {Dim::symbol("N")}, std::nullopt};
  Value* s = graph->input("s", vector);
  auto loop = std::make_shared<Graph>();
  Value* i = loop->input("i", kNumber);
  Value* state = loop->input("s", vector);
  loop->set_outputs({loop->add("add", {loop->add("concat", {state, state}, {{"axis", 0}}), i})});
  auto number = [&](int64_t value) { return graph->constant(Constant::of<int64_t>({}, {value})); };
  Node* node = graph->add_node(get_op("for_loop"), {number(1), number(4), number(1), s},
                               {body("body", loop), {"carried", 1}}, "loop", 1);
  graph->set_outputs(node->outputs);
  return graph;
}

TEST_P(LoopRoundsOn, ShapesMayChangeBetweenRounds) {
  auto graph = growing();
  Executable executable(device_, *graph);
  for (const int64_t n : {2, 1, 2}) {
    std::vector<int64_t> start(static_cast<size_t>(n), 10);
    std::vector<Tensor> results;
    executable.run({device_->from_host(TensorDesc(DType::kI64, {n}), start.data())}, results);
    EXPECT_EQ(elements<int64_t>(*device_, results[0]),
              std::vector<int64_t>(static_cast<size_t>(8 * n), 16));
  }
}

TEST_P(LoopRoundsOn, ThreadsWithOtherShapesDoNotMeet) {
  auto graph = growing();
  Executable executable(device_, *graph);
  auto work = [&](int64_t n) {
    const std::vector<int64_t> start(static_cast<size_t>(n), n);
    for (int round = 0; round < 50; ++round) {
      std::vector<Tensor> results;
      executable.run({device_->from_host(TensorDesc(DType::kI64, {n}), start.data())}, results);
      EXPECT_EQ(elements<int64_t>(*device_, results[0]),
                std::vector<int64_t>(static_cast<size_t>(8 * n), n + 6));
    }
  };
  std::thread one(work, 1), two(work, 3);
  one.join();
  two.join();
}

INSTANTIATE_TEST_SUITE_P(Drivers, LoopRoundsOn, ::testing::Values("cpu", "reference", "island"));

}  // namespace
}  // namespace anymps
