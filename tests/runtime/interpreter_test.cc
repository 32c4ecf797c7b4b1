// SPDX-License-Identifier: Apache-2.0
// Graphs that are run node by node: shapes that depend on data, views, preparations used again.
#include <gtest/gtest.h>

#include <atomic>
#include <numeric>
#include <thread>

#include "drivers/reference/reference.h"
#include "runtime/executable.h"
#include "support/device_tensor.h"
#include "support/island_driver.h"

namespace anymps {
namespace {

using testing::elements;
using testing::error_of;
using testing::tensor;

// An op for these tests: the elements that are greater than a limit, and where they are.
OP(test_keep_above)
    .doc("Elements above the limit.")
    .input("x", kFloat)
    .optional("limit", kFloat)
    .output("kept")
    .output("places", "i64")
    .infer([](InferContext& ctx) {
      const Dim n = ctx.fresh("n");
      ctx.set(0, {n});
      ctx.set(1, {n, ctx.rank(0)});
    })
    .measure([](const MeasureContext& ctx) {
      const float limit = ctx.has(1) ? *ctx.inputs[1].as<float>() : 0;
      int64_t n = 0;
      for (int64_t i = 0; i < ctx.inputs[0].desc.count(); ++i)
        n += ctx.inputs[0].as<float>()[i] > limit;
      return std::vector<Shape>{{n}, {n, ctx.inputs[0].desc.rank()}};
    })
    .no_tests("made for a test");

REFERENCE(test_keep_above) {
  const float limit = args.has(1) ? *args.in[1].as<float>() : 0;
  int64_t n = 0;
  for_each_index(args.in[0].shape(), [&](const Shape& index) {
    const float x = args.in[0].at<float>(index);
    if (!(x > limit)) return;
    args.out[0].at<float>({n}) = x;
    for (size_t axis = 0; axis < index.size(); ++axis)
      args.out[1].at<int64_t>({n, static_cast<int64_t>(axis)}) = index[axis];
    ++n;
  });
}

// y = 2 * (the positive elements of x transposed), and their places.
std::unique_ptr<Graph> keep(Dim rows) {
  auto graph = std::make_unique<Graph>();
  Value* x = graph->input("x", DType::kF32, {rows, 3});
  Value* t = graph->add("transpose", {x}, {{"perm", std::vector<int64_t>{1, 0}}});
  Node* kept = graph->add_node(get_op("test_keep_above"), {t}, {}, "keep");
  graph->set_outputs({graph->add("add", {kept->outputs[0], kept->outputs[0]}), kept->outputs[1]});
  return graph;
}

class Interpreted : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    register_island_driver();
    device_ = Device::get(GetParam());
  }
  DevicePtr device_;
};

TEST_P(Interpreted, ShapesAreMeasured) {
  Executable executable(device_, *keep(Dim::symbol("N")));
  for (int round = 0; round < 2; ++round) {
    std::vector<Tensor> results;
    executable.run({tensor(*device_, {2, 3}, {1, -1, 2, 3, 0, -4})}, results);
    EXPECT_EQ(elements(*device_, results[0]), (std::vector<float>{2, 6, 4}));
    EXPECT_EQ(results[1].desc.shape, (Shape{3, 2}));
    EXPECT_EQ(elements<int64_t>(*device_, results[1]), (std::vector<int64_t>{0, 0, 0, 1, 2, 0}));
    results.clear();
    executable.run({tensor(*device_, {1, 3}, {-1, -1, -1})}, results);
    EXPECT_EQ(results[0].desc.shape, (Shape{0}));
    EXPECT_EQ(results[1].desc.shape, (Shape{0, 2}));
  }
}

// An op that can be measured keeps nobody from a plan once the feeds' shapes tell all others.
TEST_P(Interpreted, RangesOverAnExtentHaveAPlan) {
  Graph graph;
  Value* x = graph.input("x", DType::kF32, {Dim::symbol("N"), 2});
  Value* rows = graph.add("gather", {graph.add("shape", {x}), graph.scalar(DType::kI64, 0)});
  Value* places = graph.add(
      "range", {graph.scalar(DType::kI64, 0), rows, graph.scalar(DType::kI64, 1)}, {}, "places");
  Value* hot =
      graph.add("one_hot", {places, rows, graph.constant(Constant::of<float>({2}, {0, 1}))});
  graph.set_outputs({graph.add("matmul", {hot, x})});
  Executable executable(device_, graph);
  EXPECT_NE(executable.plan({{3, 2}}), nullptr);
  for (const int64_t n : {3, 1}) {
    std::vector<float> values(static_cast<size_t>(n) * 2);
    std::iota(values.begin(), values.end(), 1.0f);
    std::vector<Tensor> results;
    executable.run({tensor(*device_, {n, 2}, values)}, results);
    EXPECT_EQ(elements(*device_, results[0]), values);
  }
  EXPECT_EQ(executable.plan_stats().size, 2u);
}

TEST_P(Interpreted, RangesOverDataHaveNone) {
  Graph graph;
  Value* limit = graph.input("limit", DType::kI64, {});
  graph.set_outputs(
      {graph.add("range", {graph.scalar(DType::kI64, 1), limit, graph.scalar(DType::kI64, 2)})});
  Executable executable(device_, graph);
  EXPECT_EQ(executable.plan({{}}), nullptr);
  for (const int64_t n : {6, 1, 6}) {
    std::vector<Tensor> results;
    executable.run({device_->from_host(TensorDesc(DType::kI64, {}), &n)}, results);
    EXPECT_EQ(elements<int64_t>(*device_, results[0]),
              n == 6 ? (std::vector<int64_t>{1, 3, 5}) : std::vector<int64_t>());
  }
}

TEST_P(Interpreted, ResultsOwnTheirMemory) {
  Graph graph;
  Value* x = graph.input("x", DType::kF32, {4});
  Value* c = graph.constant(Constant::of<float>({2}, {5, 6}), "c");
  Node* kept = graph.add_node(get_op("test_keep_above"), {x}, {}, "keep");
  Value* view = graph.add("unsqueeze", {kept->outputs[0]}, {{"axes", std::vector<int64_t>{0}}});
  graph.set_outputs({kept->outputs[0], view, x, c});
  Executable executable(device_, graph);
  const Tensor feed = tensor(*device_, {4}, {1, 2, -3, 4});
  std::vector<Tensor> results;
  executable.run({feed}, results);
  ASSERT_EQ(results.size(), 4u);
  EXPECT_NE(results[0].data(), results[1].data());
  EXPECT_NE(results[2].data(), feed.data());
  EXPECT_EQ(elements(*device_, results[1]), (std::vector<float>{1, 2, 4}));
  EXPECT_EQ(elements(*device_, results[2]), (std::vector<float>{1, 2, -3, 4}));
  EXPECT_EQ(elements(*device_, results[3]), (std::vector<float>{5, 6}));
}

TEST_P(Interpreted, WritesIntoGivenResults) {
  Executable executable(device_, *keep(2));
  std::vector<Tensor> results = {device_->empty(DType::kF32, {3}),
                                 device_->empty(DType::kI64, {3, 2})};
  void* before = results[0].data();
  executable.run({tensor(*device_, {2, 3}, {1, -1, 2, 3, 0, -4})}, results);
  EXPECT_EQ(results[0].data(), before);
  EXPECT_EQ(elements(*device_, results[0]), (std::vector<float>{2, 6, 4}));
  const std::string error = error_of([&] {
    executable.run({tensor(*device_, {2, 3}, {1, -1, -2, 3, 0, -4})}, results);
  });
  EXPECT_NE(error.find("must be f32[2], f32[3] given"), std::string::npos) << error;
}

INSTANTIATE_TEST_SUITE_P(Drivers, Interpreted, ::testing::Values("reference", "cpu", "island"),
                         [](const auto& info) { return std::string(info.param); });

TEST(Interpreter, RunsOnManyThreadsAtOnce) {
  auto device = Device::get("cpu");
  Executable executable(device, *keep(Dim::symbol("N")), {.threads = 1});
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 20; ++i) {
        const int64_t rows = 1 + (t + i) % 7;
        std::vector<Tensor> results;
        executable.run({tensor(*device, {rows, 3}, std::vector<float>(3 * rows, 1))}, results);
        wrong += results[0].desc.shape != Shape{3 * rows};
        for (const float y : elements(*device, results[0])) wrong += y != 2;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

// Of constants, the shapes are known when the graph is compiled, and there is a plan.
TEST(Interpreter, IsNotNeededForConstants) {
  auto device = Device::get("cpu");
  Graph graph;
  Value* c = graph.constant(Constant::of<float>({2, 2}, {1, -1, 2, 3}), "c");
  Node* kept = graph.add_node(get_op("test_keep_above"), {c}, {}, "keep");
  Value* x = graph.input("x", DType::kF32, {1});
  graph.set_outputs({graph.add("add", {x, graph.add("neg", {kept->outputs[0]})})});
  Executable executable(device, graph);
  EXPECT_NE(executable.plan({Shape{1}}), nullptr);
  std::vector<Tensor> results;
  executable.run({tensor(*device, {1}, {10})}, results);
  EXPECT_EQ(elements(*device, results[0]), (std::vector<float>{9, 8, 7}));
}

TEST(Interpreter, NamesTheNodesOnTheWay) {
  const Error inner = with_node(Error(Code::kInvalidArgument, "[add] bad"), "node \"add\"");
  EXPECT_STREQ(inner.what(), "[add] bad (node \"add\")");
  EXPECT_STREQ(with_node(inner, "node \"add\"").what(), "[add] bad (node \"add\")");
  EXPECT_STREQ(with_node(inner, "node \"loop\"").what(),
               "[add] bad (node \"loop\" / node \"add\")");
}

TEST(Interpreter, ChecksAgainstTheReference) {
  auto device = Device::get("cpu");
  Executable executable(device, *keep(2), {.check = true});
  std::vector<Tensor> results;
  executable.run({tensor(*device, {2, 3}, {1, -1, 2, 3, 0, -4})}, results);
  EXPECT_EQ(elements(*device, results[0]), (std::vector<float>{2, 6, 4}));
}

}  // namespace
}  // namespace anymps
