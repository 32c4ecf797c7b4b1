// SPDX-License-Identifier: Apache-2.0
// Executables: plans, views, memory, dynamic shapes, threads, streams.
#include "runtime/executable.h"

#include <gtest/gtest.h>

#include <cstring>
#include <thread>

#include "support/device_tensor.h"
#include "support/island_driver.h"

namespace anymps {
namespace {

using testing::elements;
using testing::error_of;
using testing::tensor;

// y = relu(x @ w + b) reshaped to one row for each batch entry.
std::unique_ptr<Graph> mlp(Dim batch) {
  auto graph = std::make_unique<Graph>();
  Value* x = graph->input("x", DType::kF32, {batch, 3});
  Value* w =
      graph->constant(Constant::of<float>({3, 4}, {1, 0, 0, 1, 0, 1, 0, 1, 0, 0, 1, -1}), "w");
  Value* b = graph->constant(Constant::of<float>({4}, {0, -10, 0.5, 0}), "b");
  Value* y = graph->add("relu", {graph->add("add", {graph->add("matmul", {x, w}), b})});
  Value* z = graph->add("reshape", {y}, {{"shape", std::vector<int64_t>{-1, 2, 2}}}, "z");
  graph->set_outputs({z});
  return graph;
}
const std::vector<float> kRow = {1, 2, 3}, kExpected = {1, 0, 3.5, 0};

class OnDriver : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    register_island_driver();
    device_ = Device::get(GetParam());
  }
  DevicePtr device_;
};

TEST_P(OnDriver, RunsAPlan) {
  Executable executable(device_, *mlp(1));
  std::vector<Tensor> results;
  executable.run({tensor(*device_, {1, 3}, kRow)}, results);
  ASSERT_EQ(results.size(), 1u);
  EXPECT_EQ(results[0].desc.shape, (Shape{1, 2, 2}));
  EXPECT_EQ(elements(*device_, results[0]), kExpected);
}

TEST_P(OnDriver, WritesIntoGivenResults) {
  Executable executable(device_, *mlp(1));
  std::vector<Tensor> results = {device_->empty(DType::kF32, {1, 2, 2})};
  void* before = results[0].data();
  executable.run({tensor(*device_, {1, 3}, kRow)}, results);
  EXPECT_EQ(results[0].data(), before);
  EXPECT_EQ(elements(*device_, results[0]), kExpected);
}

// state = f(state): the first result is written before the second has read the feed.
TEST_P(OnDriver, ResultsMayLieInTheMemoryOfFeeds) {
  Graph graph;
  Value* x = graph.input("x", DType::kF32, {4});
  Value* doubled = graph.add("mul", {x, graph.constant(Constant::of<float>({}, {2}))}, {}, "a");
  Value* reversed = graph.add("reverse", {x}, {{"axes", std::vector<int64_t>{0}}}, "b");
  graph.set_outputs({doubled, graph.add("add", {reversed, x}, {}, "c"), x});
  Executable executable(device_, graph);
  const Tensor feed = tensor(*device_, {4}, {1, 2, 3, 5});
  std::vector<Tensor> results = {feed, Tensor(), Tensor()};
  executable.run({feed}, results);
  EXPECT_EQ(elements(*device_, results[1]), (std::vector<float>{6, 5, 5, 6}));
  EXPECT_EQ(elements(*device_, results[2]), (std::vector<float>{1, 2, 3, 5}));
  EXPECT_EQ(elements(*device_, feed), (std::vector<float>{2, 4, 6, 10}));
  EXPECT_EQ(results[0].data(), feed.data());

  const Tensor room = device_->empty(DType::kF32, {4});
  results = {room, room, Tensor()};
  EXPECT_EQ(error_of([&] { executable.run({feed}, results); }),
            "[run] the memory given for results 'a' and 'c' overlaps");
}

// Many results in one block, among them feeds: each is seen for itself, neighbours do not overlap.
TEST_P(OnDriver, ManyResultsMayLieBesideFeedsAndInThem) {
  constexpr size_t kCount = 3000;
  Graph graph;
  Value* x = graph.input("x", DType::kF32, {2});
  Value* y = graph.input("y", DType::kF32, {2});
  graph.input("empty", DType::kF32, {0});
  std::vector<Value*> outputs;
  for (size_t i = 0; i < kCount; ++i)
    outputs.push_back(graph.add(i % 2 ? "sub" : "add", {x, y}, {}, "r" + std::to_string(i)));
  graph.set_outputs(outputs);
  Executable executable(device_, graph);
  // x lies across two results, y behind the last byte of all of them.
  std::vector<float> values(2 * kCount + 2);
  values[7] = 5, values[8] = 6;
  values[2 * kCount] = 1, values[2 * kCount + 1] = 2;
  const Tensor block = tensor(*device_, {2 * kCount + 2}, values);
  const auto part = [&](size_t first, int64_t count = 2) {
    Tensor tensor = block;
    tensor.desc = TensorDesc(DType::kF32, Shape{count});
    tensor.offset = first * sizeof(float);
    return tensor;
  };
  std::vector<Tensor> room;  // from the last to the first
  for (size_t i = 0; i < kCount; ++i) room.push_back(part(2 * (kCount - 1 - i)));
  std::vector<Tensor> results = room;
  executable.run({part(7), part(2 * kCount), part(9, 0)}, results);
  values = elements(*device_, block);
  for (size_t i = 0; i < kCount; ++i) {
    EXPECT_EQ(results[i].data(), room[i].data());
    const float sign = i % 2 ? -1.0F : 1.0F;
    ASSERT_EQ(values[2 * (kCount - 1 - i)], 5 + sign) << i;
    ASSERT_EQ(values[2 * (kCount - 1 - i) + 1], 6 + 2 * sign) << i;
  }
  EXPECT_EQ(values[2 * kCount], 1);

  results = room;
  results[kCount - 1] = part(2 * kCount - 1);  // half of r0
  const Tensor apart = tensor(*device_, {2}, {1, 2}), none = device_->empty(DType::kF32, {0});
  EXPECT_EQ(error_of([&] {
              executable.run({apart, apart, none}, results);
            }),
            "[run] the memory given for results 'r0' and 'r2999' overlaps");
  results[kCount - 1] = part(2 * kCount);
  executable.run({apart, apart, none}, results);
  EXPECT_EQ(elements(*device_, block)[2 * kCount], 0);
}

TEST_P(OnDriver, TakesEveryBatchSize) {
  Executable executable(device_, *mlp(Dim::symbol("N")));
  for (const int64_t batch : {1, 5, 0, 2, 5}) {
    std::vector<float> rows;
    for (int64_t i = 0; i < batch; ++i) rows.insert(rows.end(), kRow.begin(), kRow.end());
    std::vector<Tensor> results;
    executable.run({tensor(*device_, {batch, 3}, rows)}, results);
    EXPECT_EQ(results[0].desc.shape, (Shape{batch, 2, 2}));
    const std::vector<float> values = elements(*device_, results[0]);
    for (size_t i = 0; i < values.size(); ++i) EXPECT_EQ(values[i], kExpected[i % 4]);
  }
  EXPECT_EQ(executable.plan_stats().size, 4u);
  EXPECT_EQ(executable.plan_stats().hits, 1u);
}

TEST_P(OnDriver, ReadsStridedFeeds) {
  Executable executable(device_, *mlp(2));
  Tensor columns = tensor(*device_, {3, 2}, {1, 1, 2, 2, 3, 3});
  columns.desc.shape = {2, 3};
  columns.desc.strides = {1, 2};
  std::vector<Tensor> results;
  executable.run({columns}, results);
  EXPECT_EQ(elements(*device_, results[0]), (std::vector<float>{1, 0, 3.5, 0, 1, 0, 3.5, 0}));
}

TEST_P(OnDriver, ReturnsFeedsConstantsAndTheSameValueTwice) {
  Graph graph;
  Value* x = graph.input("x", DType::kF32, {2});
  Value* y = graph.add("neg", {x});
  Value* c = graph.constant(Constant::of<float>({1}, {7}), "c");
  graph.set_outputs({x, y, y, c});
  Executable executable(device_, graph);
  std::vector<Tensor> results;
  executable.run({tensor(*device_, {2}, {1, -2})}, results);
  EXPECT_EQ(elements(*device_, results[0]), (std::vector<float>{1, -2}));
  EXPECT_EQ(elements(*device_, results[1]), (std::vector<float>{-1, 2}));
  EXPECT_EQ(elements(*device_, results[2]), (std::vector<float>{-1, 2}));
  EXPECT_EQ(elements(*device_, results[3]), (std::vector<float>{7}));
}

// A value that is read after its in-place candidate must survive.
TEST_P(OnDriver, KeepsValuesThatAreReadLater) {
  Graph graph;
  Value* x = graph.input("x", DType::kF32, {4});
  Value* a = graph.add("exp", {x});
  Value* t = graph.add("reshape", {a}, {{"shape", std::vector<int64_t>{2, 2}}});
  Value* b = graph.add("neg", {a});
  Value* c = graph.add("sqrt", {t});
  graph.set_outputs(
      {graph.add("add", {graph.add("reshape", {c}, {{"shape", std::vector<int64_t>{4}}}), b})});
  Executable executable(device_, graph, {.without_passes = {"fuse_elementwise"}});
  std::vector<Tensor> results;
  executable.run({tensor(*device_, {4}, {0, 0, 0, 0})}, results);
  EXPECT_EQ(elements(*device_, results[0]), (std::vector<float>{0, 0, 0, 0}));
}

TEST_P(OnDriver, ShapeArithmeticNeedsNoKernel) {
  Graph graph;
  Value* x = graph.input("x", DType::kF32, {Dim::symbol("N"), Dim::symbol("S"), 6});
  Value* n = graph.add("gather", {graph.add("shape", {x}), graph.ints({0})});
  Value* shape = graph.add("concat", {n, graph.ints({-1, 2})}, {{"axis", 0}});
  graph.set_outputs({graph.add("reshape", {graph.add("relu", {x}), shape})});
  Executable executable(device_, graph);
  std::vector<Tensor> results;
  executable.run({device_->empty(DType::kF32, {2, 5, 6})}, results);
  EXPECT_EQ(results[0].desc.shape, (Shape{2, 15, 2}));
  auto plan = executable.plan({Shape{2, 5, 6}});
  ASSERT_NE(plan, nullptr);
  EXPECT_EQ(plan->steps().size(), 1u);
}

// The reshape's target is computed from data, so there is no plan and the graph is interpreted.
TEST_P(OnDriver, InterpretsShapesThatDependOnData) {
  Graph graph;
  Value* x = graph.input("x", DType::kF32, {6});
  Value* shape = graph.input("shape", DType::kI64, {2});
  graph.set_outputs({graph.add("neg", {graph.add("reshape", {x, shape})})});
  Executable executable(device_, graph);
  for (const auto& dims : {std::vector<int64_t>{2, 3}, std::vector<int64_t>{6, 1}}) {
    std::vector<Tensor> results;
    executable.run({tensor(*device_, {6}, {1, 2, 3, 4, 5, 6}),
                    device_->from_host(TensorDesc(DType::kI64, {2}), dims.data())},
                   results);
    EXPECT_EQ(results[0].desc.shape, Shape(dims.begin(), dims.end()));
    EXPECT_EQ(elements(*device_, results[0])[5], -6);
  }
}

TEST_P(OnDriver, SubmitsToAStream) {
  Executable executable(device_, *mlp(1));
  auto queue = device_->create_queue();
  std::vector<std::vector<Tensor>> results(20);
  EventRef start = queue->record();
  for (auto& result : results) executable.submit({tensor(*device_, {1, 3}, kRow)}, result, *queue);
  EventRef end = queue->record();
  end->wait();
  EXPECT_TRUE(start->done());
  EXPECT_LE(start->time(), end->time());
  queue->synchronize();
  for (auto& result : results) EXPECT_EQ(elements(*device_, result[0]), kExpected);
}

TEST_P(OnDriver, AnErrorOfQueuedWorkComesWithSynchronize) {
  Graph graph;
  Value* x = graph.input("x", DType::kF32, {4});
  Value* i = graph.input("i", DType::kI64, {1});
  graph.set_outputs({graph.add("gather", {x, i}, {}, "look_up")});
  Executable executable(device_, graph);
  auto queue = device_->create_queue();
  const int64_t bad = 9;
  std::vector<Tensor> results;
  executable.submit(
      {tensor(*device_, {4}, {1, 2, 3, 4}), device_->from_host(TensorDesc(DType::kI64, {1}), &bad)},
      results, *queue);
  const std::string error = error_of([&] { queue->synchronize(); });
  EXPECT_NE(error.find("[gather]"), std::string::npos) << error;
  EXPECT_NE(error.find("look_up"), std::string::npos) << error;
}

INSTANTIATE_TEST_SUITE_P(Drivers, OnDriver, ::testing::Values("reference", "cpu", "island"),
                         [](const auto& info) { return std::string(info.param); });

TEST(Executable, RunsOnManyThreadsAtOnce) {
  auto device = Device::get("cpu");
  Executable executable(device, *mlp(Dim::symbol("N")), {.threads = 1});
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) {
        const int64_t batch = 1 + (t + i) % 3;
        std::vector<float> rows;
        for (int64_t r = 0; r < batch; ++r) rows.insert(rows.end(), kRow.begin(), kRow.end());
        std::vector<Tensor> results;
        executable.run({tensor(*device, {batch, 3}, rows)}, results);
        const std::vector<float> values = elements(*device, results[0]);
        for (size_t k = 0; k < values.size(); ++k) wrong += values[k] != kExpected[k % 4];
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST(Executable, AllocatesNothingInRun) {
  auto device = Device::get("cpu");
  Executable executable(device, *mlp(1));
  const std::vector<Tensor> feeds = {tensor(*device, {1, 3}, kRow)};
  std::vector<Tensor> results;
  executable.run(feeds, results);
  const uint64_t before = device->allocator().stats().allocs;
  for (int i = 0; i < 10; ++i) executable.run(feeds, results);
  EXPECT_EQ(device->allocator().stats().allocs, before);
}

// What lies between the nodes of large plans goes back after each run: with plans for many shapes
// it would add up.
TEST(Executable, LargePlansHoldNoMemory) {
  const DevicePtr device = Device::get("reference");
  Graph graph;
  Value* x = graph.input("x", DType::kF32, {Dim::symbol("N")});
  Value* many = graph.add("expand", {x}, {{"shape", std::vector<int64_t>{3000, -1}}});
  graph.set_outputs({graph.add("reduce_sum", {graph.add("add", {many, many})},
                               {{"axes", std::vector<int64_t>{0, 1}}})});
  Executable executable(device, graph);
  const size_t before = device->allocator().stats().allocated;
  for (const int64_t extent : {6000, 10}) {
    std::vector<Tensor> results;
    executable.run({tensor(*device, {extent}, std::vector<float>(extent, 1))}, results);
    EXPECT_EQ(elements(*device, results[0])[0], 6000.0f * static_cast<float>(extent));
    results.clear();
    const size_t held = device->allocator().stats().allocated - before;
    EXPECT_EQ(held == 0, extent == 6000) << held;
  }
}

TEST(Executable, GivesItsMemoryBack) {
  auto device = Device::get("cpu");
  device->allocator().empty_cache();
  const size_t before = device->allocator().stats().allocated;
  {
    Executable executable(device, *mlp(1));
    std::vector<Tensor> results;
    executable.run({tensor(*device, {1, 3}, kRow)}, results);
    EXPECT_GT(device->allocator().stats().allocated, before);
  }
  EXPECT_EQ(device->allocator().stats().allocated, before);
}

TEST(Executable, ForgetsOldShapes) {
  auto device = Device::get("cpu");
  Executable executable(device, *mlp(Dim::symbol("N")), {.plan_cache = 3});
  for (int64_t batch = 1; batch <= 10; ++batch) {
    std::vector<Tensor> results;
    executable.run({device->empty(DType::kF32, {batch, 3})}, results);
  }
  EXPECT_EQ(executable.plan_stats().size, 3u);
  EXPECT_EQ(executable.plan_stats().evictions, 7u);
}

TEST(Executable, PacksWeightsOnceForAllShapes) {
  auto device = Device::get("cpu");
  const size_t before = device->packed().bytes();
  Executable executable(device, *mlp(Dim::symbol("N")));
  size_t first = 0;
  for (const int64_t batch : {4, 8}) {
    std::vector<Tensor> results;
    executable.run({device->empty(DType::kF32, {batch, 3})}, results);
    if (!first) first = device->packed().bytes() - before;
  }
  EXPECT_EQ(device->packed().bytes() - before, first);
}

TEST(Executable, RefusesWrongFeeds) {
  auto device = Device::get("cpu");
  Executable executable(device, *mlp(Dim::symbol("N")));
  std::vector<Tensor> results;
  EXPECT_EQ(error_of([&] { executable.run({}, results); }),
            "[run] the graph has 1 inputs, 0 feeds given");
  EXPECT_EQ(error_of([&] {
              executable.run({device->empty(DType::kF32, {1, 4})}, results);
            }),
            "[run] input 'x' must be f32[N, 3], f32[1, 4] given");
  EXPECT_EQ(error_of([&] {
              executable.run({device->empty(DType::kI64, {1, 3})}, results);
            }),
            "[run] input 'x' must be f32[N, 3], i64[1, 3] given");
  results = {device->empty(DType::kF32, {1, 5})};
  EXPECT_EQ(error_of([&] {
              executable.run({device->empty(DType::kF32, {1, 3})}, results);
            }),
            "[run] result 'z' must be f32[1, 2, 2], f32[1, 5] given");
}

TEST(Executable, EqualSymbolsMustHaveEqualExtents) {
  auto device = Device::get("cpu");
  Graph graph;
  Value* a = graph.input("a", DType::kF32, {Dim::symbol("N")});
  Value* b = graph.input("b", DType::kF32, {Dim::symbol("N")});
  graph.set_outputs({graph.add("add", {a, b})});
  Executable executable(device, graph);
  std::vector<Tensor> results;
  EXPECT_NE(
      error_of([&] {
        executable.run({device->empty(DType::kF32, {2}), device->empty(DType::kF32, {3})}, results);
      }).find("input 'b' must be f32[N]"),
      std::string::npos);
}

// Files give one name to different dimensions. What passes found out about equal ones is wrong
// then.
TEST(Executable, LooseNamesMayHaveSeveralExtents) {
  auto device = Device::get("cpu");
  const Dim n = Dim::symbol("N");
  Graph graph;
  graph.loose_names = true;
  Value* a = graph.input("a", DType::kF32, {n});
  Value* b = graph.input("b", DType::kF32, {n, n});
  const auto extents = [&](Value* value) {
    return graph.add("cast", {graph.add("shape", {value})}, {{"dtype", DType::kF32}});
  };
  Value* sums =
      graph.add("reduce_sum", {b}, {{"axes", std::vector<int64_t>{1}}, {"keep_dims", false}});
  graph.set_outputs({extents(a), extents(b), graph.add("add", {a, sums})});
  Executable executable(device, graph);
  std::vector<Tensor> results;
  const Tensor two = tensor(*device, {2}, {10, 20});
  executable.run({two, tensor(*device, {2, 3}, {1, 2, 3, 4, 5, 6})}, results);
  EXPECT_EQ(elements(*device, results[0]), (std::vector<float>{2}));
  EXPECT_EQ(elements(*device, results[1]), (std::vector<float>{2, 3}));
  EXPECT_EQ(elements(*device, results[2]), (std::vector<float>{16, 35}));
  results.clear();
  executable.run({two, tensor(*device, {2, 2}, {1, 2, 3, 4})}, results);
  EXPECT_EQ(elements(*device, results[1]), (std::vector<float>{2, 2}));
  EXPECT_EQ(elements(*device, results[2]), (std::vector<float>{13, 27}));
  // Where they must be equal, it is still an error, of the op that needs it.
  results.clear();
  EXPECT_NE(error_of([&] {
              executable.run({two, device->empty(DType::kF32, {3, 4})}, results);
            }).find("[add]"),
            std::string::npos);
}

TEST(Executable, OutOfMemoryIsAnErrorAndRecovers) {
  auto device = Device::get("cpu");
  Graph graph;
  Value* x = graph.input("x", DType::kF32, {Dim::symbol("N")});
  graph.set_outputs({graph.add("neg", {graph.add("cumsum", {x}, {{"axis", 0}})})});
  Executable executable(device, graph);
  std::vector<Tensor> results, feeds = {device->empty(DType::kF32, {1 << 20})};
  device->allocator().set_limit(device->allocator().stats().allocated + (1 << 20));
  EXPECT_NE(error_of([&] { executable.run(feeds, results); }).find("[memory]"), std::string::npos);
  device->allocator().set_limit(0);
  executable.run(feeds, results);
  EXPECT_EQ(results[0].desc.shape, (Shape{1 << 20}));
}

// What a program's buffer starts with may be as large as a file says.
TEST(Executable, ZerosThatAVariableStartsWithCountForTheLimit) {
  constexpr int64_t kCount = 4 << 20;
  auto device = Device::get("cpu");
  Graph graph;
  Value* zeros = graph.constant(Constant::lazy(
      DType::kF32, {kCount}, [](std::byte* out) { std::memset(out, 0, kCount * sizeof(float)); }));
  Value* old = graph.add("read_variable", {zeros}, {{"variable", "state"}});
  graph.set_outputs({graph.add("reduce_sum", {old})});
  Executable executable(device, graph);
  std::vector<Tensor> results;
  device->allocator().empty_cache();
  const size_t held = device->allocator().stats().reserved;
  device->allocator().set_limit(held + (1 << 20));
  const std::string error = error_of([&] { executable.run({}, results); });
  device->allocator().set_limit(0);
  EXPECT_NE(error.find("[memory] cannot allocate 16777216 bytes"), std::string::npos) << error;
  executable.run({}, results);
  EXPECT_EQ(elements(*device, results[0]), std::vector<float>{0});
}

TEST(Executable, IsCleanUnderTheCheck) {
  auto device = Device::get("cpu");
  Executable checked(device, *mlp(2), {.check = true});
  std::vector<Tensor> results;
  checked.run({tensor(*device, {2, 3}, {1, 2, 3, 4, 5, 6})}, results);
  EXPECT_EQ(elements(*device, results[0])[0], 1);
}

TEST(Null, PlansAndCountsButComputesNothing) {
  auto device = Device::get("null");
  Executable executable(device, *mlp(Dim::symbol("N")));
  std::vector<Tensor> results;
  const std::string before = device->driver().description();
  executable.run({device->empty(DType::kF32, {1000, 3})}, results);
  EXPECT_EQ(results[0].desc.shape, (Shape{1000, 2, 2}));
  EXPECT_NE(device->driver().description(), before);
}

TEST(Island, CopiesThroughTheDriverOnly) {
  register_island_driver();
  auto device = Device::get("island");
  Graph graph;
  Value* x = graph.input("x", DType::kF32, {2});
  graph.set_outputs({graph.add("add", {x, x})});
  Executable executable(device, graph);
  const std::vector<Tensor> feeds = {tensor(*device, {2}, {1, 2})};
  std::vector<Tensor> results;
  const IslandCounters before = island_counters();
  executable.run(feeds, results);
  const IslandCounters after = island_counters();
  EXPECT_EQ(after.launches, before.launches + 1);
  EXPECT_EQ(after.to_host, before.to_host);  // its own kernel: nothing went through the host
  EXPECT_EQ(elements(*device, results[0]), (std::vector<float>{2, 4}));
}

}  // namespace
}  // namespace anymps
