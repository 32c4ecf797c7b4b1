// SPDX-License-Identifier: Apache-2.0
// A child forked by a program that has used the engine computes: models, eager calls, streams.
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <numeric>
#include <thread>

#include "runtime/eager/eager.h"
#include "runtime/executable.h"
#include "support/child.h"
#include "support/device_tensor.h"

namespace anymps {
namespace {

using testing::elements;
using testing::end_of_child;
using testing::tensor;

constexpr int64_t kWidth = 256;  // wide enough for several threads

// y = x @ w, where w is twice the unit matrix.
std::unique_ptr<Graph> doubling(ConstantPtr weights) {
  auto graph = std::make_unique<Graph>();
  Value* x = graph->input("x", DType::kF32, {Dim::symbol("N"), kWidth});
  graph->set_outputs({graph->add("matmul", {x, graph->constant(std::move(weights))})});
  return graph;
}
std::vector<float> twice_the_unit_matrix() {
  std::vector<float> values(static_cast<size_t>(kWidth * kWidth));
  for (size_t i = 0; i < kWidth; ++i) values[i * (kWidth + 1)] = 2;
  return values;
}

class Fork : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
#if defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "ThreadSanitizer has no threads in a child of a program with threads";
#endif
  }
  std::shared_ptr<Executable> model() {
    const auto weights = Constant::of<float>({kWidth, kWidth}, twice_the_unit_matrix());
    return std::make_shared<Executable>(device_, *doubling(weights), CompileOptions{});
  }
  Tensor feed(int64_t rows) {
    std::vector<float> values(static_cast<size_t>(rows * kWidth));
    std::iota(values.begin(), values.end(), 1.0f);
    return tensor(*device_, {rows, kWidth}, values);
  }
  bool doubled(const Tensor& x, const Tensor& y) {
    const auto before = elements(*device_, x), after = elements(*device_, y);
    for (size_t i = 0; i < before.size(); ++i)
      if (after[i] != 2 * before[i]) return false;
    return before.size() == after.size();
  }
  bool runs(Executable& executable, int64_t rows, Queue* queue = nullptr,
            Profiler* profiler = nullptr) {
    const Tensor x = feed(rows);
    std::vector<Tensor> results;
    executable.run({x}, results, queue, profiler);
    return doubled(x, results[0]);
  }
  bool runs_later(Executable& executable, int64_t rows, Queue& queue) {
    const Tensor x = feed(rows);
    std::vector<Tensor> results;
    executable.submit({x}, results, queue);
    queue.synchronize();
    return doubled(x, results[0]);
  }
  bool adds(int64_t rows) {
    const Tensor x = feed(rows);
    const Tensor* inputs[] = {&x, &x};
    Tensor y;
    device_->eager().call(get_op("add"), inputs, {}, {&y, 1});
    return doubled(x, y);
  }

  DevicePtr device_ = Device::get(GetParam());
};

TEST_P(Fork, AChildRunsModelsAndEagerCalls) {
  const auto old = model();
  Profiler profiler;
  ASSERT_TRUE(runs(*old, 32, nullptr, &profiler));
  ASSERT_TRUE(adds(1));
  EXPECT_EQ(end_of_child([&] {
              return runs(*old, 32, nullptr, &profiler) && runs(*old, 7) && runs(*model(), 32) &&
                     adds(1) && adds(2) && !profiler.table().empty();
            }),
            "good");
  EXPECT_TRUE(runs(*old, 32) && adds(1));
}

TEST_P(Fork, AChildUsesStreamsOfItsParentAndItsOwn) {
  const auto executable = model();
  auto queue = device_->create_queue();
  ASSERT_TRUE(runs_later(*executable, 8, *queue));
  const EventRef event = queue->record();
  event->wait();
  const auto time = event->time();
  EXPECT_EQ(end_of_child([&] {
              const auto fresh = device_->create_queue();
              bool good = event->done() && event->time() == time;
              event->wait();
              fresh->wait(event);
              queue->wait(event);
              for (Queue* each : {queue.get(), fresh.get()})
                good = good && runs_later(*executable, 8, *each) && runs(*executable, 8, each) &&
                       each->idle();
              queue.reset();
              return good;
            }),
            "good");
  EXPECT_TRUE(runs_later(*executable, 8, *queue));
}

TEST_P(Fork, AChildDropsWhatIsQueuedAndTheParentDoesIt) {
  const auto executable = model();
  auto queue = device_->create_queue();
  std::promise<void> started, go_on;
  std::atomic<int> done{0}, released{0};
  const auto count = [&](int*) { ++released; };
  queue->submit([&] {
    started.set_value();
    go_on.get_future().wait();
  });
  queue->submit([&done, hold = std::shared_ptr<int>(nullptr, count)] { ++done; });
  const EventRef event = queue->record();
  started.get_future().wait();
  std::thread waits([&] { queue->synchronize(); });
  const auto drops = [&] {
    event->wait();
    const auto other = device_->create_queue();
    other->wait(event);
    other->synchronize();
    bool good = event->done() && queue->idle() && runs_later(*executable, 8, *queue);
    queue.reset();
    return good && done == 0 && released == 1;
  };
  EXPECT_EQ(end_of_child(drops), "good");
  EXPECT_EQ(end_of_child([&] { return end_of_child(drops) == "good" && drops(); }), "good");
  EXPECT_FALSE(event->done());
  go_on.set_value();
  waits.join();
  EXPECT_EQ(done, 1);
  EXPECT_TRUE(event->done());
}

// The other thread holds the executable's lock, the constant's, and packs its weights.
TEST_P(Fork, AChildRunsAModelWhosePlanAnotherThreadIsMaking) {
  std::atomic<int> calls{0};
  std::promise<void> started, go_on;
  const auto weights = Constant::lazy(DType::kF32, {kWidth, kWidth}, [&](std::byte* out) {
    if (calls++ == 0) {
      started.set_value();
      go_on.get_future().wait();
    }
    const auto values = twice_the_unit_matrix();
    std::memcpy(out, values.data(), values.size() * sizeof(float));
  });
  Executable executable(device_, *doubling(weights), CompileOptions{});
  auto other = std::async(std::launch::async, [&] { return runs(executable, 8); });
  started.get_future().wait();
  EXPECT_EQ(end_of_child([&] { return runs(executable, 8) && runs(executable, 9); }), "good");
  go_on.set_value();
  EXPECT_TRUE(other.get());
}

TEST_P(Fork, ChildrenOfABusyProgramCompute) {
  const auto executable = model();
  auto queue = device_->create_queue();
  ASSERT_TRUE(runs(*executable, 8) && adds(2));
  std::atomic<bool> stop{false};
  std::thread busy([&] {
    while (!stop) runs(*executable, 8), adds(2);
  });
  std::thread streams([&] {
    while (!stop) runs_later(*executable, 8, *queue);
  });
  for (int i = 0; i < 10; ++i)
    EXPECT_EQ(end_of_child([&] {
                return runs(*executable, 8) && runs_later(*executable, 8, *queue) && adds(2);
              }),
              "good");
  stop = true;
  busy.join();
  streams.join();
}

INSTANTIATE_TEST_SUITE_P(Drivers, Fork, ::testing::Values("cpu", "reference"));

}  // namespace
}  // namespace anymps
