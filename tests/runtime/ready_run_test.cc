// SPDX-License-Identifier: Apache-2.0
// Runs that find their plan ready: the same numbers and errors as the long way gives, whatever was
// run before.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "runtime/executable.h"
#include "support/device_tensor.h"

namespace anymps {
namespace {

using testing::elements;
using testing::error_of;
using testing::tensor;
using Numbers = std::vector<float>;

// y = 2 x + 1, z = y * y, for any number of rows of two.
std::unique_ptr<Graph> two_results() {
  auto graph = std::make_unique<Graph>();
  Value* x = graph->input("x", DType::kF32, {Dim::symbol("N"), 2});
  Value* two = graph->constant(Constant::of<float>({}, {2}));
  Value* one = graph->constant(Constant::of<float>({}, {1}));
  Value* y = graph->add("add", {graph->add("mul", {x, two}), one}, {}, "y");
  graph->set_outputs({y, graph->add("mul", {y, y}, {}, "z")});
  return graph;
}

Numbers row(size_t count, float from) {
  Numbers values(count);
  for (size_t i = 0; i < count; ++i) values[i] = from + static_cast<float>(i);
  return values;
}

class ReadyRuns : public ::testing::TestWithParam<const char*> {
 protected:
  DevicePtr device_ = Device::get(GetParam());

  void expect(const std::vector<Tensor>& results, const Numbers& x) {
    ASSERT_EQ(results.size(), 2u);
    const Numbers y = elements(*device_, results[0]), z = elements(*device_, results[1]);
    ASSERT_EQ(y.size(), x.size());
    for (size_t i = 0; i < x.size(); ++i) {
      ASSERT_EQ(y[i], 2 * x[i] + 1) << i;
      ASSERT_EQ(z[i], y[i] * y[i]) << i;
    }
  }
};

TEST_P(ReadyRuns, CountAsHitsAndGiveTheSame) {
  Executable executable(device_, *two_results());
  for (int turn = 0; turn < 3; ++turn) {
    for (const int64_t rows : {1, 3, 0, 7}) {
      const Numbers x = row(static_cast<size_t>(2 * rows), static_cast<float>(turn) - 2);
      std::vector<Tensor> results;
      executable.run({tensor(*device_, {rows, 2}, x)}, results);
      expect(results, x);
    }
  }
  EXPECT_EQ(executable.plan_stats().size, 4u);
  EXPECT_EQ(executable.plan_stats().hits, 8u);
}

TEST_P(ReadyRuns, WriteIntoGivenResultsAndMakeTheOthers) {
  Executable executable(device_, *two_results());
  for (int turn = 0; turn < 3; ++turn) {
    const Numbers x = row(4, static_cast<float>(turn));
    std::vector<Tensor> results = {Tensor(), device_->empty(DType::kF32, {2, 2})};
    const void* given = results[1].data();
    executable.run({tensor(*device_, {2, 2}, x)}, results);
    EXPECT_EQ(results[1].data(), given);
    expect(results, x);
  }
}

// Nothing of this may be taken for the plan that is ready, or be written where it is still read.
TEST_P(ReadyRuns, LeaveTheRestToTheLongWay) {
  Executable executable(device_, *two_results());
  const Numbers x = {1, 2, 3, 4};
  std::vector<Tensor> results;
  const Tensor feed = tensor(*device_, {2, 2}, x);
  for (int turn = 0; turn < 2; ++turn) {
    results.clear();
    executable.run({feed}, results);
  }
  Tensor turned = feed;
  turned.desc.strides = {1, 2};
  results.clear();
  executable.run({turned}, results);
  expect(results, {1, 3, 2, 4});

  const auto part = [&](const Tensor& of, size_t first) {
    Tensor tensor = of;
    tensor.desc = TensorDesc(DType::kF32, {2, 2});
    tensor.offset = first * sizeof(float);
    return tensor;
  };
  for (const size_t at : {0, 1, 2, 3, 4}) {  // a result meets the feed, by all or some of it
    const Tensor block = tensor(*device_, {12}, row(12, 5));
    results = {part(block, 4 - at), part(block, 8)};
    executable.run({part(block, 4)}, results);
    expect(results, {9, 10, 11, 12});
  }
  const Tensor block = device_->empty(DType::kF32, {12});
  results = {part(block, 0), part(block, 3)};
  EXPECT_EQ(error_of([&] { executable.run({feed}, results); }),
            "[run] the memory given for results 'y' and 'z' overlaps");
  results = {device_->empty(DType::kF32, {2, 2}), device_->empty(DType::kF32, {4})};
  EXPECT_EQ(error_of([&] { executable.run({feed}, results); }),
            "[run] result 'z' must be f32[2, 2], f32[4] given");
  results.clear();
  EXPECT_EQ(error_of([&] {
              executable.run({feed, feed}, results);
            }),
            "[run] the graph has 1 inputs, 2 feeds given");
  const std::string wrong = error_of([&] {
    executable.run({device_->empty(DType::kI32, {2, 2})}, results);
  });
  EXPECT_EQ(wrong.substr(0, 26), "[run] input 'x' must be f3") << wrong;
  executable.run({feed}, results);
  expect(results, x);
}

TEST_P(ReadyRuns, KnowBindings) {
  Graph graph;
  Value* x = graph.input("x", DType::kF32, {2});
  Value* n = graph.add("dimension", {}, {{"symbol", std::string("N")}});
  graph.set_outputs({graph.add("mul", {x, graph.add("cast", {n}, {{"dtype", DType::kF32}})})});
  Executable executable(device_, graph);
  const Tensor feed = tensor(*device_, {2}, {1, 2});
  for (const int64_t bound : {3, 3, 5, 5, 3}) {
    std::vector<Tensor> results;
    executable.run({feed}, results, nullptr, nullptr, executable.bind({{"N", bound}}));
    const auto value = static_cast<float>(bound);
    EXPECT_EQ(elements(*device_, results[0]), (Numbers{value, 2 * value}));
  }
  std::vector<Tensor> results;
  EXPECT_EQ(error_of([&] { executable.run({feed}, results); }),
            "[run] nothing tells dimension 'N': no feed has it, so it must be bound");
}

TEST_P(ReadyRuns, GoWithThePlans) {
  device_->allocator().empty_cache();
  Executable executable(device_, *two_results(), {.plan_cache = 2});
  const size_t before = device_->allocator().stats().allocated;
  for (const int64_t rows : {100, 100, 200, 200, 300, 300, 100}) {
    std::vector<Tensor> results;
    executable.run({device_->empty(DType::kF32, {rows, 2})}, results);
  }
  executable.clear_plans();
  EXPECT_EQ(executable.plan_stats().size, 0u);
  EXPECT_EQ(device_->allocator().stats().allocated, before);
  const uint64_t misses = executable.plan_stats().misses;
  std::vector<Tensor> results;
  const Numbers x = row(200, -3);
  executable.run({tensor(*device_, {100, 2}, x)}, results);
  expect(results, x);
  EXPECT_EQ(executable.plan_stats().misses, misses + 1) << "the plan was still ready";
}

// More threads than there is room for, two shapes, and one who clears meanwhile.
TEST_P(ReadyRuns, OfManyThreads) {
  Executable executable(device_, *two_results());
  std::atomic<bool> failed{false};
  std::vector<std::thread> threads;
  for (size_t t = 0; t < 10; ++t)
    threads.emplace_back([&, t] {
      for (size_t i = 0; i < 200; ++i) {
        const size_t rows = 1 + (t + i) % 2;
        const Numbers x = row(2 * rows, static_cast<float>(t * 100 + i));
        std::vector<Tensor> results;
        executable.run({tensor(*device_, {static_cast<int64_t>(rows), 2}, x)}, results);
        const Numbers y = elements(*device_, results[0]);
        for (size_t k = 0; k < x.size(); ++k)
          if (y[k] != 2 * x[k] + 1) failed = true;
        if (t == 0 && i % 50 == 0) executable.clear_plans();
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_FALSE(failed);
}

INSTANTIATE_TEST_SUITE_P(Drivers, ReadyRuns, ::testing::Values("cpu", "reference"));

}  // namespace
}  // namespace anymps
