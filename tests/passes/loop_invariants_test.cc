// SPDX-License-Identifier: Apache-2.0
// What loops carry and never change: found, captured, and the numbers stay the same.
#include "passes/pass_test.h"
#include "runtime/executable.h"
#include "support/graph_parts.h"

namespace anymps::testing {

namespace {

const ValueType kPair{DType::kF32, true, {2}, std::nullopt};

struct LoopInvariants : ::testing::Test {
  Graph graph;
  DevicePtr device = Device::get("cpu");

  Value* number(int64_t value) { return graph.constant(Constant::of<int64_t>({}, {value})); }
  Value* pair(float a, float b) { return graph.constant(Constant::of<float>({2}, {a, b})); }

  // All results, one after the other.
  std::vector<float> run(const std::vector<std::string>& without, const std::vector<float>& x) {
    Executable executable(device, graph, {.check = true, .without_passes = without});
    std::vector<Tensor> feeds = {device->from_host(TensorDesc(DType::kF32, {2}), x.data())};
    std::vector<Tensor> results;
    executable.run(feeds, results);
    std::vector<float> all;
    for (const Tensor& result : results) {
      std::vector<float> part(static_cast<size_t>(result.desc.count()));
      device->to_host(result, part.data());
      all.insert(all.end(), part.begin(), part.end());
    }
    return all;
  }
  // The loop carries `carried` values after the pass and gets `inputs`; results are as before.
  void expect(const char* attr, int64_t carried, size_t inputs, const std::vector<float>& results) {
    EXPECT_EQ(run({"loop_invariants"}, {1, 2}), results);
    EXPECT_EQ(run({}, {1, 2}), results);
    auto copy = graph.clone();
    PassContext context = fusing();
    run_passes(*copy, context);
    for (const auto& node : copy->nodes()) {
      if (!node->op->is(kStructural)) continue;
      EXPECT_EQ(node->attrs.i(attr), carried) << to_text(*copy);
      EXPECT_EQ(node->inputs.size(), inputs) << to_text(*copy);
    }
  }
};

// (i, w, s, v) -> (w, s * w + v, v through an identity)
TEST_F(LoopInvariants, OfACountedLoop) {
  Value* x = graph.input("x", kPair);
  auto loop = std::make_shared<Graph>();
  loop->input("i", kNumber);
  Value* w = loop->input("w", kPair);
  Value* s = loop->input("s", kPair);
  Value* v = loop->input("v", kPair);
  Value* next = loop->add("add", {loop->add("mul", {s, w}), v});
  loop->set_outputs({w, next, loop->add("identity", {v})});
  Node* node = graph.add_node(get_op("for_loop"),
                              {number(0), number(3), number(1), pair(2, 3), x, pair(1, 0)},
                              {body("body", loop), {"carried", 3}}, "loop", 3);
  graph.set_outputs({node->outputs[1], node->outputs[0], node->outputs[2]});
  expect("carried", 1, 6, {15, 54, 2, 3, 1, 0});
}

// A feed that is handed on becomes a result; a capture that was there stays in its place.
TEST_F(LoopInvariants, OfAnOnnxLoop) {
  Value* x = graph.input("x", kPair);
  auto loop = std::make_shared<Graph>();
  loop->input("i", kNumber);
  Value* go = loop->input("go", kTruth);
  Value* w = loop->input("w", kPair);
  Value* s = loop->input("s", kPair);
  Value* captured = loop->input("captured", kPair);
  Value* next = loop->add("sub", {loop->add("mul", {s, w}), captured});
  loop->set_outputs({go, w, next, loop->add("neg", {next})});
  Node* node = graph.add_node(get_op("loop"), {number(2), nullptr, x, pair(1, 1), pair(0, 5)},
                              {body("body", loop), {"carried", 2}}, "loop", 3);
  graph.set_outputs(node->outputs);
  expect("carried", 1, 5, {1, 2, 1, -11, -1, 3, -1, 11});
}

TEST_F(LoopInvariants, OfALoopThatNeverRuns) {
  Value* x = graph.input("x", kPair);
  auto loop = std::make_shared<Graph>();
  loop->input("i", kNumber);
  Value* w = loop->input("w", kPair);
  Value* s = loop->input("s", kPair);
  loop->set_outputs({w, loop->add("mul", {s, w})});
  Node* node = graph.add_node(get_op("for_loop"), {number(4), number(4), number(1), x, pair(5, 6)},
                              {body("body", loop), {"carried", 2}}, "loop", 2);
  graph.set_outputs(node->outputs);
  expect("carried", 1, 5, {1, 2, 5, 6});
}

TEST_F(LoopInvariants, OfAScan) {
  Value* x = graph.input("x", kPair);
  auto step = std::make_shared<Graph>();
  Value* w = step->input("w", kPair);
  Value* s = step->input("s", kPair);
  Value* element = step->input("element", DType::kF32, {});
  Value* next = step->add("add", {s, step->add("mul", {w, element})});
  step->set_outputs({w, next, next});
  Node* node = graph.add_node(get_op("scan"), {pair(10, 100), pair(0, 0), x},
                              {body("body", step), {"states", 2}, {"scan_inputs", 1}}, "scan", 3);
  graph.set_outputs(node->outputs);
  expect("states", 1, 3, {10, 100, 30, 300, 10, 100, 30, 300});
}

// before: (w, s) -> (s[0] < 50, s, w); after: (s, w) -> (w, s * w)
TEST_F(LoopInvariants, OfAWhileLoopThatSwapsPlaces) {
  Value* x = graph.input("x", kPair);
  auto before = std::make_shared<Graph>(), after = std::make_shared<Graph>();
  Value* w = before->input("w", kPair);
  Value* s = before->input("s", kPair);
  Value* first = before->add("reduce_min", {s}, {{"axes", Ints{0}}, {"keep_dims", false}});
  before->set_outputs({before->add("less", {first, before->scalar(DType::kF32, 50)}), s, w});
  Value* t = after->input("s", kPair);
  Value* u = after->input("w", kPair);
  after->set_outputs({u, after->add("mul", {t, u})});
  Node* node =
      graph.add_node(get_op("while_loop"), {pair(3, 4), x},
                     {body("before", before), body("after", after), {"carried", 2}}, "loop", 2);
  graph.set_outputs(node->outputs);
  expect("carried", 1, 2, {81, 512, 3, 4});
}

// Values that change places are not the same in every round.
TEST_F(LoopInvariants, SwappedValuesAreNone) {
  Value* x = graph.input("x", kPair);
  auto loop = std::make_shared<Graph>();
  loop->input("i", kNumber);
  Value* a = loop->input("a", kPair);
  Value* b = loop->input("b", kPair);
  loop->set_outputs({b, a});
  Node* node = graph.add_node(get_op("for_loop"), {number(0), number(3), number(1), x, pair(8, 9)},
                              {body("body", loop), {"carried", 2}}, "loop", 2);
  graph.set_outputs(node->outputs);
  expect("carried", 2, 5, {8, 9, 1, 2});
}

// A node keeps one output.
TEST_F(LoopInvariants, ALoopOfNothingElse) {
  Value* x = graph.input("x", kPair);
  auto loop = std::make_shared<Graph>();
  loop->input("i", kNumber);
  Value* a = loop->input("a", kPair);
  Value* b = loop->input("b", kPair);
  loop->set_outputs({a, b});
  Node* node = graph.add_node(get_op("for_loop"), {number(0), number(3), number(1), x, pair(8, 9)},
                              {body("body", loop), {"carried", 2}}, "loop", 2);
  graph.set_outputs(node->outputs);
  expect("carried", 1, 5, {1, 2, 8, 9});
}

}  // namespace

}  // namespace anymps::testing
