// SPDX-License-Identifier: Apache-2.0
// A batch that is cut runs on several threads at once, and nobody notices but the clock.
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "fake_request.h"

namespace anymps::serving {
namespace {

using nlohmann::json;

constexpr int64_t kWidth = 1024;

// Says which thread its run ended on.
class Watched : public FakeRequest {
 public:
  explicit Watched(float value) : value(value) {
    floats("x", {1, kWidth}, std::vector<float>(kWidth, value));
  }
  void done(const Times& times) override {
    thread = std::this_thread::get_id();
    end = times.end;
    FakeRequest::done(times);
    ended.set_value();
  }
  std::promise<void> ended;
  float value;
  std::thread::id thread;
  uint64_t end = 0;
};

// y = x times the identity, eight times over: long enough that a thread pays.
std::shared_ptr<Model> load_long(const Folder& folder) {
  amps::Graph graph;
  amps::Value x = graph.input("x", amps::DType::f32, {-1, kWidth}, {"N", ""});
  std::vector<float> identity(kWidth * kWidth, 0.0f);
  for (size_t i = 0; i < kWidth; ++i) identity[i * kWidth + i] = 1;
  for (int i = 0; i < 8; ++i)
    x = graph.add(graph.matmul(graph.softmax(x, {.axis = -1}),
                               graph.constant(amps::DType::f32, {kWidth, kWidth}, identity.data())),
                  x, i == 7 ? "y" : "");
  graph.outputs({x});
  graph.save((folder.version() / "model.mps").string());
  const json parameters = {{"micro_batch", {{"string_value", "1"}}},
                           {"threads", {{"string_value", "2"}}}};
  return Model::load(folder.version(),
                     {{"name", "m"}, {"max_batch_size", 8}, {"parameters", parameters}}, true);
}

TEST(SideBySide, EveryRequestHasItsOwnAnswer) {
  Folder folder;
  auto model = load_long(folder);
  if (model->device().max_threads() < 2) GTEST_SKIP() << "one core";
  std::set<std::thread::id> threads;
  // The last of an odd number has all threads to itself.
  for (int turn = 0; turn < 40; ++turn) {
    std::vector<std::unique_ptr<Watched>> batch;
    std::vector<Request*> requests;
    for (int i = 0; i < 4 + turn % 2; ++i) {
      batch.push_back(std::make_unique<Watched>(static_cast<float>(turn * 10 + i)));
      requests.push_back(batch.back().get());
    }
    FakeRequest bad;  // fails alone
    bad.floats("x", {1, 3}, {1, 2, 3});
    requests.push_back(&bad);
    const Times times = model->execute(requests);
    EXPECT_EQ(times.batch_size, batch.size());
    EXPECT_LE(times.start, times.compute_start);
    EXPECT_LT(times.compute_start, times.compute_end);
    EXPECT_TRUE(bad.error);
    for (const auto& request : batch) {
      ASSERT_TRUE(request->finished);
      EXPECT_LE(request->end, times.end);
      // Softmax of equal numbers is 1 / width each time.
      const std::vector<float> y = request->values<float>("y");
      ASSERT_EQ(y.size(), static_cast<size_t>(kWidth));
      for (const float each : y) ASSERT_NEAR(each, request->value + 8.0f / kWidth, 1e-3);
      threads.insert(request->thread);
    }
  }
  EXPECT_GE(threads.size(), 2u);
}

// Fails before it computes, when the other is through.
class Late : public FakeRequest {
 public:
  explicit Late(std::future<void> other) : other_(std::move(other)) {
    floats("x", {1, kWidth}, std::vector<float>(kWidth, 1));
  }
  void* output(std::string_view, amps_dtype, std::span<const int64_t>, size_t) override {
    other_.wait_for(std::chrono::seconds(5));
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    throw Error(Code::kUnavailable, "no memory");
  }

 private:
  std::future<void> other_;
};

TEST(SideBySide, TheTimesAreOfThoseThatComputed) {
  Folder folder;
  auto model = load_long(folder);
  if (model->device().max_threads() < 2) GTEST_SKIP() << "one core";
  Watched first(1), second(2);
  execute(*model, first, second);  // how long a run takes is known from now on
  Watched good(3);
  Late late(good.ended.get_future());
  const Times times = execute(*model, good, late);
  ASSERT_TRUE(good.finished);
  EXPECT_EQ(late.message(), "no memory");
  EXPECT_LE(times.start, times.compute_start);
  EXPECT_LT(times.compute_start, times.compute_end);
  EXPECT_LT(times.compute_end, times.end);
}

}  // namespace
}  // namespace anymps::serving
