// SPDX-License-Identifier: Apache-2.0
// Control flow: branches, loops, scans, calls, nesting, variables, errors, threads.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "runtime/executable.h"
#include "runtime/structural.h"
#include "support/device_tensor.h"
#include "support/graph_parts.h"
#include "support/island_driver.h"

namespace anymps {
namespace {

using testing::body;
using testing::elements;
using testing::error_of;
using testing::GraphPtr;
using testing::tensor;

Tensor truth(Device& device, bool value) {
  return device.from_host(TensorDesc(DType::kBool, {}), &value);
}

class ControlFlowOn : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    register_island_driver();
    device_ = Device::get(GetParam());
  }
  std::vector<Tensor> run(const Graph& graph, const std::vector<Tensor>& feeds) {
    std::vector<Tensor> results;
    Executable(device_, graph, {.check = true}).run(feeds, results);
    return results;
  }
  DevicePtr device_;
};

// then: x + w, else: concat(x, x)
std::unique_ptr<Graph> branches() {
  auto graph = std::make_unique<Graph>();
  Value* condition = graph->input("c", DType::kBool, {});
  Value* x = graph->input("x", DType::kF32, {Dim::symbol("N")});
  Value* w = graph->constant(Constant::of<float>({1}, {10}), "w");
  auto yes = std::make_shared<Graph>(), no = std::make_shared<Graph>();
  Value* a = yes->input("a", x->type);
  yes->set_outputs({yes->add("add", {a, yes->input("w", w->type)})});
  Value* b = no->input("b", x->type);
  no->input("unused", w->type);
  no->set_outputs({no->add("concat", {b, b}, {{"axis", 0}})});
  Node* node = graph->add_node(get_op("if_else"), {condition, x, w},
                               {body("then_branch", yes), body("else_branch", no)}, "choice", 1);
  graph->set_outputs({graph->add("neg", {node->output()})});
  return graph;
}

TEST_P(ControlFlowOn, TakesOneBranch) {
  auto graph = branches();
  const Tensor x = tensor<float>(*device_, {2}, {1, 2});
  EXPECT_EQ(elements(*device_, run(*graph, {truth(*device_, true), x})[0]),
            (std::vector<float>{-11, -12}));
  EXPECT_EQ(elements(*device_, run(*graph, {truth(*device_, false), x})[0]),
            (std::vector<float>{-1, -2, -1, -2}));
}

// before: (i, s) -> (i < limit, i, s); after: (i, s) -> (i + 1, s * 2)
TEST_P(ControlFlowOn, RepeatsWhileThePredicateHolds) {
  Graph graph;
  const ValueType number{DType::kI64, true, {}, std::nullopt};
  const ValueType vector{DType::kF32, true, {2}, std::nullopt};
  Value* start = graph.input("start", number);
  Value* s = graph.input("s", vector);
  Value* limit = graph.input("limit", number);
  auto before = std::make_shared<Graph>(), after = std::make_shared<Graph>();
  Value* i = before->input("i", number);
  Value* state = before->input("s", vector);
  before->set_outputs({before->add("less", {i, before->input("limit", number)}), i, state});
  Value* j = after->input("i", number);
  Value* t = after->input("s", vector);
  after->input("limit", number);
  after->set_outputs(
      {after->add("add", {j, after->scalar(DType::kI64, 1)}), after->add("add", {t, t})});
  Node* node =
      graph.add_node(get_op("while_loop"), {start, s, limit},
                     {body("before", before), body("after", after), {"carried", 2}}, "doubling", 2);
  graph.set_outputs(node->outputs);
  auto results =
      run(graph, {tensor<int64_t>(*device_, {}, {3}), tensor<float>(*device_, {2}, {1, 3}),
                  tensor<int64_t>(*device_, {}, {7})});
  EXPECT_EQ(elements<int64_t>(*device_, results[0])[0], 7);
  EXPECT_EQ(elements(*device_, results[1]), (std::vector<float>{16, 48}));
}

TEST_P(ControlFlowOn, CountsUpAndDown) {
  const ValueType number{DType::kI32, true, {}, std::nullopt};
  for (const auto& [lower, upper, step, expected] :
       {std::tuple{0, 5, 1, 10}, {5, 0, -2, 9}, {3, 3, 1, 0}, {1, 10, 4, 15}}) {
    Graph graph;
    Value* sum = graph.input("sum", number);
    auto loop = std::make_shared<Graph>();
    Value* i = loop->input("i", number);
    loop->set_outputs({loop->add("add", {i, loop->input("sum", number)})});
    auto constant = [&](int value) {
      return graph.constant(Constant::of<int32_t>({}, {static_cast<int32_t>(value)}));
    };
    Node* node =
        graph.add_node(get_op("for_loop"), {constant(lower), constant(upper), constant(step), sum},
                       {body("body", loop), {"carried", 1}}, "sum_up", 1);
    graph.set_outputs(node->outputs);
    auto results = run(graph, {tensor<int32_t>(*device_, {}, {0})});
    EXPECT_EQ(elements<int32_t>(*device_, results[0])[0], expected);
  }
}

// carried: x grows by itself each time; scan: its first element times the captured factor.
std::unique_ptr<Graph> growing_loop() {
  auto graph = std::make_unique<Graph>();
  Value* trips = graph->input("trips", DType::kI64, {});
  Value* go = graph->input("go", DType::kBool, {});
  Value* x = graph->input("x", DType::kF32, {Dim::symbol("N")});
  Value* factor = graph->input("factor", DType::kF32, {1});
  auto loop = std::make_shared<Graph>();
  loop->input("i", DType::kI64, {});
  Value* condition = loop->input("c", DType::kBool, {});
  Value* carried = loop->input("x", DType::kF32, {Dim::symbol("M")});
  Value* first = loop->add("slice", {carried},
                           {{"starts", std::vector<int64_t>{0}},
                            {"ends", std::vector<int64_t>{1}},
                            {"axes", std::vector<int64_t>{0}},
                            {"steps", std::vector<int64_t>{1}}});
  Value* scan = loop->add("mul", {first, loop->input("factor", DType::kF32, {1})});
  loop->set_outputs({condition, loop->add("concat", {scan, carried}, {{"axis", 0}}), scan});
  Node* node = graph->add_node(get_op("loop"), {trips, go, x, factor},
                               {body("body", loop), {"carried", 1}}, "grow", 2);
  graph->set_outputs(node->outputs);
  return graph;
}

TEST_P(ControlFlowOn, CarriesWhatGrows) {
  auto graph = growing_loop();
  EXPECT_FALSE(graph->outputs()[0]->shape()[0].known());
  auto results =
      run(*graph, {tensor<int64_t>(*device_, {}, {3}), truth(*device_, true),
                   tensor<float>(*device_, {1}, {1}), tensor<float>(*device_, {1}, {2})});
  EXPECT_EQ(elements(*device_, results[0]), (std::vector<float>{8, 4, 2, 1}));
  EXPECT_EQ(results[1].desc.shape, (Shape{3, 1}));
  EXPECT_EQ(elements(*device_, results[1]), (std::vector<float>{2, 4, 8}));
}

TEST_P(ControlFlowOn, ALoopMayNotRunAtAll) {
  auto graph = growing_loop();
  for (const bool go : {true, false}) {
    auto results =
        run(*graph, {tensor<int64_t>(*device_, {}, {go ? 0 : 5}), truth(*device_, go),
                     tensor<float>(*device_, {2}, {1, 2}), tensor<float>(*device_, {1}, {2})});
    EXPECT_EQ(elements(*device_, results[0]), (std::vector<float>{1, 2}));
    EXPECT_EQ(results[1].desc.shape, (Shape{0, 1}));
  }
}

// A running sum over the columns of x, from the last on; scan outputs along axis 1.
TEST_P(ControlFlowOn, ScansAlongAnAxisBackwards) {
  Graph graph;
  Value* start = graph.input("start", DType::kF32, {2});
  Value* x = graph.input("x", DType::kF32, {2, 3});
  auto step = std::make_shared<Graph>();
  Value* sum =
      step->add("add", {step->input("s", DType::kF32, {2}), step->input("x", DType::kF32, {2})});
  step->set_outputs({sum, step->add("neg", {sum})});
  const std::vector<int64_t> one = {1};
  Node* node = graph.add_node(get_op("scan"), {start, x},
                              {body("body", step),
                               {"states", 1},
                               {"scan_inputs", 1},
                               {"input_axes", one},
                               {"input_reversed", one},
                               {"output_axes", one},
                               {"output_reversed", one}},
                              "sums", 2);
  graph.set_outputs(node->outputs);
  EXPECT_EQ(to_string(graph.outputs()[1]->type), "f32[2, 3]");
  auto results = run(graph, {tensor<float>(*device_, {2}, {0, 100}),
                             tensor<float>(*device_, {2, 3}, {1, 2, 3, 4, 5, 6})});
  EXPECT_EQ(elements(*device_, results[0]), (std::vector<float>{6, 115}));
  EXPECT_EQ(elements(*device_, results[1]), (std::vector<float>{-6, -5, -3, -115, -111, -106}));
}

// sum over i < 3 of sum over j < 2 of (x + j), inside a branch, by a call.
TEST_P(ControlFlowOn, NestsBodiesInBodies) {
  const ValueType number{DType::kF32, true, {}, std::nullopt};
  const ValueType index{DType::kI64, true, {}, std::nullopt};
  auto inner = std::make_shared<Graph>();
  Value* j = inner->input("j", index);
  Value* sum = inner->input("sum", number);
  Value* x = inner->input("x", number);
  inner->set_outputs({inner->add(
      "add", {sum, inner->add("add", {x, inner->add("cast", {j}, {{"dtype", DType::kF32}})})})});
  auto times = [&](Graph& graph, GraphPtr what, int64_t count, Value* start, Value* captured) {
    auto i64 = [&](int64_t value) { return graph.constant(Constant::of<int64_t>({}, {value})); };
    return graph
        .add_node(get_op("for_loop"), {i64(0), i64(count), i64(1), start, captured},
                  {body("body", std::move(what)), {"carried", 1}}, "times", 1)
        ->output();
  };
  auto outer = std::make_shared<Graph>();
  outer->input("i", index);
  Value* outer_sum = outer->input("sum", number);
  Value* outer_x = outer->input("x", number);
  outer->set_outputs({times(*outer, inner, 2, outer_sum, outer_x)});
  auto callee = std::make_shared<Graph>();
  Value* callee_x = callee->input("x", number);
  callee->set_outputs({times(*callee, outer, 3, callee->scalar(DType::kF32, 0), callee_x)});
  auto yes = std::make_shared<Graph>(), no = std::make_shared<Graph>();
  yes->set_outputs({yes->add_node(get_op("call"), {yes->input("x", number)},
                                  {body("callee", callee), {"symbol", "twice"}}, "call", 1)
                        ->output()});
  no->set_outputs({no->input("x", number)});
  Graph graph;
  Value* condition = graph.input("c", DType::kBool, {});
  Value* given = graph.input("x", number);
  graph.set_outputs(graph
                        .add_node(get_op("if_else"), {condition, given},
                                  {body("then_branch", yes), body("else_branch", no)}, "if", 1)
                        ->outputs);
  const Tensor five = tensor<float>(*device_, {}, {5});
  EXPECT_EQ(elements(*device_, run(graph, {truth(*device_, true), five})[0])[0], 33);
  EXPECT_EQ(elements(*device_, run(graph, {truth(*device_, false), five})[0])[0], 5);
}

TEST_P(ControlFlowOn, VariablesOutliveARun) {
  Graph graph;
  Value* x = graph.input("x", DType::kF32, {2});
  Value* zero = graph.constant(Constant::of<float>({2}, {0, 0}));
  Value* old = graph.add("read_variable", {zero}, {{"variable", "sum"}}, "read");
  Value* sum =
      graph.add("assign_variable", {graph.add("add", {old, x})}, {{"variable", "sum"}}, "assign");
  Value* now = graph.add("read_variable", {zero}, {{"variable", "sum"}}, "read_again");
  graph.set_outputs(
      {graph.add_node(get_op("control_dependency"), {old, sum}, {}, "ordered", 1)->output(), now});
  Executable executable(device_, graph);
  for (float round = 1; round <= 3; ++round) {
    std::vector<Tensor> results;
    executable.run({tensor<float>(*device_, {2}, {1, 2})}, results);
    EXPECT_EQ(elements(*device_, results[0]), (std::vector<float>{round - 1, 2 * round - 2}));
    EXPECT_EQ(elements(*device_, results[1]), (std::vector<float>{round, 2 * round}));
  }
  EXPECT_EQ(elements(*device_, *executable.variables().get("sum"))[1], 6);
  executable.variables().set("sum", tensor<float>(*device_, {2}, {50, 60}));
  std::vector<Tensor> results;
  executable.run({tensor<float>(*device_, {2}, {1, 2})}, results);
  EXPECT_EQ(elements(*device_, results[1]), (std::vector<float>{51, 62}));
}

INSTANTIATE_TEST_SUITE_P(Drivers, ControlFlowOn, ::testing::Values("reference", "cpu", "island"),
                         [](const auto& info) { return std::string(info.param); });

TEST(ControlFlow, ConstantsAreConstantsInsideBodies) {
  auto device = Device::get("cpu");
  const size_t before = device->packed().bytes();
  Graph graph;
  Value* condition = graph.input("c", DType::kBool, {});
  Value* x = graph.input("x", DType::kF32, {4, 64});
  Value* w = graph.constant(Constant::of<float>({64, 64}, std::vector<float>(64 * 64, 0.5f)), "w");
  auto yes = std::make_shared<Graph>(), no = std::make_shared<Graph>();
  for (const auto& branch : {yes, no}) {
    Value* a = branch->input("a", x->type);
    branch->set_outputs({branch->add("matmul", {a, branch->input("w", w->type)})});
  }
  graph.set_outputs(graph
                        .add_node(get_op("if_else"), {condition, x, w},
                                  {body("then_branch", yes), body("else_branch", no)}, "if", 1)
                        ->outputs);
  Executable executable(device, graph);
  EXPECT_GT(device->packed().bytes(), before);  // packed when compiled, once for both
}

// What is known when the graph is compiled is part of the graph, which then has a plan.
TEST(ControlFlow, KnownBranchesAndCallsAreInlined) {
  auto device = Device::get("cpu");
  Graph graph;
  Value* x = graph.input("x", DType::kF32, {2, 3});
  Value* rank = graph.add("size", {graph.add("shape", {x})});
  Value* condition = graph.add("equal", {rank, graph.scalar(DType::kI64, 2)});
  auto yes = std::make_shared<Graph>(), no = std::make_shared<Graph>();
  Value* a = yes->input("x", x->type);
  auto callee = std::make_shared<Graph>();
  callee->set_outputs({callee->add("neg", {callee->input("x", x->type)})});
  yes->set_outputs(
      {yes->add_node(get_op("call"), {a}, {body("callee", callee)}, "call", 1)->output(), a});
  Value* b = no->input("x", x->type);
  Value* flat = no->add("reshape", {b}, {{"shape", std::vector<int64_t>{-1}}});
  no->set_outputs({flat, flat});
  Node* node = graph.add_node(get_op("if_else"), {condition, x},
                              {body("then_branch", yes), body("else_branch", no)}, "by_rank", 2);
  EXPECT_FALSE(node->output()->type.ranked);
  graph.set_outputs({graph.add("exp", {node->outputs[0]}), node->outputs[1]});
  Executable executable(device, graph);
  EXPECT_NE(executable.plan({Shape{2, 3}}), nullptr) << "no plan";
  std::vector<Tensor> results;
  executable.run({tensor<float>(*device, {2, 3}, {0, 0, 0, 0, 0, 1})}, results);
  EXPECT_EQ(elements(*device, results[0])[0], 1);
  EXPECT_EQ(elements(*device, results[1]), (std::vector<float>{0, 0, 0, 0, 0, 1}));
}

// An assignment inside a body happens, once, whether or not somebody uses what the body gives.
TEST(ControlFlow, EffectsInBodiesAreKept) {
  auto device = Device::get("cpu");
  for (const char* op : {"call", "if_else"}) {
    Graph graph;
    Value* x = graph.input("x", DType::kF32, {});
    auto add_one = std::make_shared<Graph>();
    Value* old =
        add_one->add("read_variable", {add_one->input("x", x->type)}, {{"variable", "n"}}, "read");
    Value* next = add_one->add("add", {old, add_one->scalar(DType::kF32, 1)});
    add_one->set_outputs({add_one->add("assign_variable", {next}, {{"variable", "n"}}, "assign")});
    if (std::string(op) == "call") {
      graph.add_node(get_op(op), {x}, {body("callee", add_one)}, "count", 1);
    } else {
      Value* condition = graph.input("c", DType::kBool, {});
      graph.add_node(get_op(op), {condition, x},
                     {body("then_branch", add_one), body("else_branch", add_one)}, "count", 1);
    }
    graph.set_outputs({graph.add("neg", {x})});
    Executable executable(device, graph);
    std::vector<Tensor> feeds = {tensor<float>(*device, {}, {10})};
    if (graph.inputs().size() == 2) feeds.push_back(truth(*device, true));
    for (int round = 0; round < 2; ++round) {
      std::vector<Tensor> results;
      executable.run(feeds, results);
      EXPECT_EQ(elements(*device, results[0])[0], -10);
    }
    EXPECT_EQ(elements(*device, *executable.variables().get("n"))[0], 12) << op;
  }
}

TEST(ControlFlow, ErrorsNameTheWay) {
  auto device = Device::get("cpu");
  const ValueType index{DType::kI64, true, {}, std::nullopt};
  const ValueType list{DType::kF32, true, {4}, std::nullopt};
  auto loop = std::make_shared<Graph>();
  Value* i = loop->input("i", index);
  Value* x = loop->input("x", list);
  Value* picked = loop->add("gather", {x, i}, {}, "look_up");
  loop->set_outputs({loop->add("add", {x, picked})});
  Graph graph;
  Value* start = graph.input("x", list);
  auto i64 = [&](int64_t value) { return graph.constant(Constant::of<int64_t>({}, {value})); };
  graph.set_outputs(graph
                        .add_node(get_op("for_loop"), {i64(2), i64(9), i64(1), start},
                                  {body("body", loop), {"carried", 1}}, "rounds", 1)
                        ->outputs);
  Executable executable(device, graph);
  std::vector<Tensor> results;
  const std::string error = error_of([&] {
    executable.run({tensor<float>(*device, {4}, {1, 2, 3, 4})}, results);
  });
  EXPECT_NE(error.find("[gather]"), std::string::npos) << error;
  EXPECT_NE(error.find("(node \"rounds\" / node \"look_up\")"), std::string::npos) << error;
}

TEST(ControlFlow, BodiesMustFit) {
  Graph graph;
  Value* condition = graph.input("c", DType::kBool, {});
  Value* x = graph.input("x", DType::kF32, {3});
  auto yes = std::make_shared<Graph>(), no = std::make_shared<Graph>();
  yes->set_outputs({yes->input("x", DType::kF32, {4})});
  no->set_outputs({no->input("x", DType::kF32, {3})});
  auto add = [&](std::vector<Value*> inputs) {
    graph.add_node(get_op("if_else"), std::move(inputs),
                   {body("then_branch", yes), body("else_branch", no)}, "if", 1);
  };
  EXPECT_EQ(error_of([&] { add({condition}); }),
            "[if_else] 'then_branch' has 1 inputs, must have 0 (node \"if\")");
  EXPECT_EQ(error_of([&] {
              add({condition, x});
            }),
            "[if_else] input 'x' of 'then_branch' is f32[4], but gets f32[3] (node \"if\")");
  auto loop = std::make_shared<Graph>();
  loop->input("i", DType::kI64, {});
  loop->set_outputs({loop->input("x", DType::kF32, {3})});
  EXPECT_EQ(error_of([&] {
              Value* one = graph.scalar(DType::kI64, 1);
              graph.add_node(get_op("for_loop"), {one, one, one, x},
                             {body("body", loop), {"carried", 2}}, "for", 2);
            }),
            "[for_loop] carried is 2, but there are 1 (node \"for\")");
  EXPECT_NE(error_of([&] {
              graph.add_node(get_op("sequence_construct"), {}, {}, "none");
            }).find("needs at least one input"),
            std::string::npos);
  Value* two = graph.input("two", DType::kBool, {2});
  EXPECT_EQ(error_of([&] {
              add({two, x});
            }),
            "[if_else] condition must have one element, it has the shape [2] (node \"if\")");
}

TEST(ControlFlow, RunsOnManyThreadsAtOnce) {
  auto device = Device::get("cpu");
  Executable executable(device, *growing_loop(), {.threads = 1});
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&, t] {
      for (int64_t trips = t; trips < t + 8; ++trips) {
        std::vector<Tensor> results;
        executable.run({tensor<int64_t>(*device, {}, {trips}), truth(*device, true),
                        tensor<float>(*device, {1}, {1}), tensor<float>(*device, {1}, {1})},
                       results);
        wrong += results[0].desc.shape != Shape{trips + 1};
        for (const float y : elements(*device, results[0])) wrong += y != 1;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace anymps
