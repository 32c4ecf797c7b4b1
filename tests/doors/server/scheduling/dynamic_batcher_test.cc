// SPDX-License-Identifier: Apache-2.0
// Dynamic batching and the default scheduler, with an instance that runs when the test says so.
#include "server/scheduling/dynamic_batcher.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "scheduling/fake_instance.h"

namespace anymps::server {
namespace {

using test::Answers;
using test::Batches;
using test::config;
using test::FakeInstance;
using test::floats;
using test::Gate;
using test::instances;
using test::Log;
using test::request;

class DynamicBatcherTest : public ::testing::Test {
 protected:
  // One batch ("first") is in the instance and waits at the gate: the rest queues up behind it.
  void start(const std::string& text, size_t count = 1) {
    scheduler_ = make_scheduler(config(text), instances(count, &gate_, &log_), limiter_, metrics_);
    for (size_t i = 0; i < count; ++i) {
      scheduler_->enqueue(request(answers_, "first" + std::to_string(i)));
      gate_.wait_arrived(i + 1);
    }
    started_ = count;
  }
  void add(const std::string& id, int64_t rows = 1) {
    scheduler_->enqueue(request(answers_, id, rows));
    ++started_;
  }
  void add(RequestPtr request) {
    scheduler_->enqueue(std::move(request));
    ++started_;
  }
  Batches finish() {
    gate_.open_for_good();
    answers_.wait(started_);
    Batches batches = log_.batches();
    batches.erase(batches.begin());
    return batches;
  }

  void TearDown() override { gate_.open_for_good(); }

  RateLimiter limiter_{false, {}};
  ModelMetrics metrics_;
  Gate gate_;
  Log log_;
  Answers answers_;
  std::unique_ptr<Scheduler> scheduler_;
  size_t started_ = 0;
};

TEST_F(DynamicBatcherTest, OneAfterTheOtherWithoutDynamicBatching) {
  start("max_batch_size: 8");
  for (const char* id : {"a", "b", "c"}) add(id);
  EXPECT_EQ(metrics_.pending(), 3);
  EXPECT_EQ(finish(), (Batches{{"a"}, {"b"}, {"c"}}));
}

TEST_F(DynamicBatcherTest, OneAfterTheOtherWithoutABatchAxis) {
  start("max_batch_size: 0 dynamic_batching {}");
  for (const char* id : {"a", "b"}) add(id);
  EXPECT_EQ(finish(), (Batches{{"a"}, {"b"}}));
}

TEST_F(DynamicBatcherTest, FillsBatchesUpToTheMaximum) {
  start("max_batch_size: 4 dynamic_batching {}");
  for (const char* id : {"a", "b"}) add(id);
  add("c", 2);
  add("d", 3);
  add("e", 2);
  EXPECT_EQ(finish(), (Batches{{"a", "b", "c"}, {"d"}, {"e"}}));
}

TEST_F(DynamicBatcherTest, PrefersPreferredSizes) {
  start("max_batch_size: 8 dynamic_batching { preferred_batch_size: [2, 4] }");
  for (const char* id : {"a", "b", "c", "d", "e", "f", "g"}) add(id);
  EXPECT_EQ(finish(), (Batches{{"a", "b", "c", "d"}, {"e", "f"}, {"g"}}));
}

TEST_F(DynamicBatcherTest, DifferentShapesDoNotGoTogether) {
  start("max_batch_size: 8 dynamic_batching {}");
  add("a");
  add("b");
  add(request(answers_, "c", {floats("x", {1, 3})}));
  add(request(answers_, "d", {floats("x", {1, 3}), floats("optional", {1, 1})}));
  add(request(answers_, "e", {floats("optional", {1, 1}), floats("x", {1, 3})}));
  EXPECT_EQ(finish(), (Batches{{"a", "b"}, {"c"}, {"d", "e"}}));
}

TEST_F(DynamicBatcherTest, RaggedInputsMayDiffer) {
  start("max_batch_size: 8 dynamic_batching {} input { name: 'x' allow_ragged_batch: true }");
  add("a");
  add(request(answers_, "b", {floats("x", {1, 3})}));
  EXPECT_EQ(finish(), (Batches{{"a", "b"}}));
}

TEST_F(DynamicBatcherTest, HigherPrioritiesGoFirst) {
  start(
      "max_batch_size: 2 dynamic_batching { priority_levels: 3 default_priority_level: 2 "
      "preferred_batch_size: 2 }");
  const auto with = [&](const char* id, uint64_t priority) {
    RequestPtr one = request(answers_, id);
    one->priority = priority;
    add(std::move(one));
  };
  with("low", 3);
  with("usual", 0);
  with("strange", 9);
  with("high", 1);
  EXPECT_EQ(finish(), (Batches{{"high", "usual"}, {"strange", "low"}}));
}

TEST_F(DynamicBatcherTest, AFullQueueRejects) {
  start("max_batch_size: 1 dynamic_batching { default_queue_policy { max_queue_size: 2 } }");
  add("a");
  RequestPtr gone = request(answers_, "gone");
  gone->cancelled = std::make_shared<std::atomic<bool>>(false);
  const auto flag = gone->cancelled;
  add(std::move(gone));
  add("too many");
  EXPECT_EQ(answers_.error("too many"), "[request id: too many] Exceeds maximum queue size");
  EXPECT_EQ(answers_["too many"].error->code(), Code::kUnavailable);
  // A request whose client has gone away makes room.
  *flag = true;
  add("b");
  EXPECT_EQ(answers_["gone"].error->code(), Code::kCancelled);
  EXPECT_EQ(finish(), (Batches{{"a"}, {"b"}}));
  EXPECT_EQ(metrics_.failures(),
            (std::map<Code, uint64_t>{{Code::kUnavailable, 1}, {Code::kCancelled, 1}}));
  EXPECT_EQ(metrics_.pending(), 0);
}

TEST_F(DynamicBatcherTest, CancelledRequestsAreNotRun) {
  start("max_batch_size: 4 dynamic_batching {}");
  add("a");
  RequestPtr gone = request(answers_, "gone");
  gone->cancelled = std::make_shared<std::atomic<bool>>(true);
  add(std::move(gone));
  add("b");
  EXPECT_EQ(finish(), (Batches{{"a", "b"}}));
  EXPECT_EQ(answers_["gone"].error->code(), Code::kCancelled);
}

TEST_F(DynamicBatcherTest, TimeoutsAreEnforcedWhileAllInstancesAreBusy) {
  start(
      "max_batch_size: 1 dynamic_batching { default_queue_policy { allow_timeout_override: true } "
      "}");
  RequestPtr late = request(answers_, "late");
  late->timeout_us = 500;
  add(std::move(late));
  // Nothing else comes, and the instance stays busy.
  EXPECT_EQ(answers_.error("late"), "Request timeout expired");
  EXPECT_EQ(answers_["late"].error->code(), Code::kUnavailable);
  EXPECT_EQ(metrics_.pending(), 0);
  EXPECT_EQ(finish(), Batches{});
}

TEST_F(DynamicBatcherTest, RequestsShortenTheTimeout) {
  start(
      "max_batch_size: 1 dynamic_batching { default_queue_policy { allow_timeout_override: true "
      "default_timeout_microseconds: 100000000000 } }");
  RequestPtr hurried = request(answers_, "hurried");
  hurried->timeout_us = 500;
  add("patient");
  add(std::move(hurried));
  EXPECT_EQ(answers_.error("hurried"), "Request timeout expired");
  EXPECT_EQ(finish(), (Batches{{"patient"}}));
}

TEST_F(DynamicBatcherTest, AnIdleInstanceTakesWorkAtOnce) {
  start("max_batch_size: 8 dynamic_batching {}", 2);  // returns when both run
  EXPECT_EQ(metrics_.pending(), 0);
  EXPECT_EQ(finish(), (Batches{{"first1"}}));
}

TEST_F(DynamicBatcherTest, ABatchWaitsForMoreUntilItIsComplete) {
  scheduler_ = make_scheduler(config("max_batch_size: 8 dynamic_batching { preferred_batch_size: 3 "
                                     "max_queue_delay_microseconds: 1000000000000 }"),
                              instances(2, nullptr, &log_), limiter_, metrics_);
  for (const char* id : {"a", "b"}) add(id);
  EXPECT_EQ(answers_.size(), 0u);
  add("c");
  answers_.wait(3);
  EXPECT_EQ(log_.batches(), (Batches{{"a", "b", "c"}}));
  // One that cannot join completes the batch as well.
  add("d");
  add(request(answers_, "e", {floats("x", {1, 3})}));
  answers_.wait(4);
  EXPECT_EQ(log_.batches().back(), (std::vector<std::string>{"d"}));
}

TEST_F(DynamicBatcherTest, ABatchWaitsNoLongerThanItsDelay) {
  scheduler_ = make_scheduler(config("max_batch_size: 8 dynamic_batching { preferred_batch_size: 3 "
                                     "max_queue_delay_microseconds: 300 }"),
                              instances(1, nullptr, &log_), limiter_, metrics_);
  add("a");
  answers_.wait(1);
  EXPECT_EQ(log_.batches(), (Batches{{"a"}}));
}

TEST_F(DynamicBatcherTest, OrderIsKeptAcrossInstances) {
  Gate slow;
  std::vector<std::unique_ptr<Instance>> two;
  const auto run = [&](Request& one) {
    if (one.id == "a") slow.pass();
    return Response{};
  };
  for (int i = 0; i < 2; ++i) two.push_back(std::make_unique<FakeInstance>(&gate_, &log_, run));
  scheduler_ =
      make_scheduler(config("max_batch_size: 1 dynamic_batching { preserve_ordering: true }"),
                     std::move(two), limiter_, metrics_);
  gate_.open_for_good();
  scheduler_->enqueue(request(answers_, "a"));
  slow.wait_arrived(1);
  for (const char* id : {"b", "c", "d"}) scheduler_->enqueue(request(answers_, id));
  gate_.wait_arrived(4);  // all have reached an instance, but "a" is not through
  EXPECT_EQ(answers_.size(), 0u);
  slow.open();
  answers_.wait(4);
  EXPECT_EQ(answers_.order(), (std::vector<std::string>{"a", "b", "c", "d"}));
}

TEST_F(DynamicBatcherTest, WhatIsStillQueuedAtTheEndIsAnswered) {
  start("max_batch_size: 4 dynamic_batching {}");
  for (const char* id : {"a", "b", "c"}) add(id);
  std::thread ending([&] { scheduler_.reset(); });
  answers_.wait(3);  // while "first" still runs
  EXPECT_EQ(answers_["a"].error->code(), Code::kUnavailable);
  EXPECT_EQ(answers_.error("c"),
            "Server is stopping, scheduler for model has stopped accepting new inference requests");
  gate_.open_for_good();
  ending.join();
  EXPECT_EQ(answers_.size(), 4u);
  EXPECT_EQ(answers_.error("first0"), "");
  EXPECT_TRUE(answers_.each_once());
}

TEST_F(DynamicBatcherTest, TheLastAnswerMayEndTheScheduler) {
  auto shared = std::make_shared<std::unique_ptr<Scheduler>>(
      make_scheduler(config("max_batch_size: 4 dynamic_batching { default_queue_policy { "
                            "allow_timeout_override: true } }"),
                     instances(2, nullptr, nullptr), limiter_, metrics_));
  RequestPtr last = request(answers_, "last");
  last->respond = [shared, this](Response&& response) mutable {
    shared->reset();
    answers_.add(std::move(response));
  };
  (*shared)->enqueue(std::move(last));
  answers_.wait(1);
  EXPECT_EQ(answers_.error("last"), "");
}

TEST_F(DynamicBatcherTest, ConfigurationsAreChecked) {
  const auto error = [&](const std::string& text) -> std::string {
    try {
      make_scheduler(config(text), instances(1, nullptr, nullptr), limiter_, metrics_);
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_EQ(error("max_batch_size: 4 dynamic_batching { preferred_batch_size: 5 }"),
            "dynamic batching preferred size must be <= max batch size for m");
  EXPECT_EQ(error("max_batch_size: 4 dynamic_batching { preferred_batch_size: 0 }"),
            "dynamic batching preferred size must be positive for m");
  EXPECT_EQ(error("max_batch_size: 4 dynamic_batching { priority_levels: 2 }"),
            "default priority level must be in range [1, 2] for m");
  EXPECT_EQ(error("max_batch_size: 4 dynamic_batching { preserve_ordering: true "
                  "default_queue_policy { timeout_action: DELAY } }"),
            "Queue policy can not have DELAY as timeout action when 'preserve_ordering' is true "
            "for m");
  EXPECT_NE(error("max_batch_size: 4 dynamic_batching { priority_levels: 2000000000000 "
                  "default_priority_level: 1 }"),
            "");
}

// Many threads, all features at once: every request is answered exactly once, also those that the
// end of the scheduler meets.
TEST_F(DynamicBatcherTest, EveryRequestIsAnsweredExactlyOnce) {
  for (int round = 0; round < 6; ++round) {
    Answers answers;
    constexpr int kThreads = 6, kEach = 200;
    {
      auto scheduler = make_scheduler(
          config(round % 2 ? "max_batch_size: 8 dynamic_batching { preferred_batch_size: [3, 8] "
                             "max_queue_delay_microseconds: 50 preserve_ordering: true }"
                           : "max_batch_size: 8 dynamic_batching { priority_levels: 3 "
                             "default_priority_level: 2 default_queue_policy { max_queue_size: 40 "
                             "default_timeout_microseconds: 3000 allow_timeout_override: true } "
                             "priority_queue_policy { key: 3 value { timeout_action: DELAY "
                             "default_timeout_microseconds: 100 } } }"),
          instances(3, nullptr, nullptr), limiter_, metrics_);
      std::vector<std::thread> threads;
      for (int t = 0; t < kThreads; ++t)
        threads.emplace_back([&, t] {
          for (int i = 0; i < kEach; ++i) {
            RequestPtr one = request(answers, std::to_string(t * kEach + i),
                                     {floats("x", {1 + i % 3, 1 + (i / 50) % 2})});
            one->priority = static_cast<uint64_t>(i % 4);
            one->timeout_us = i % 7 == 0 ? 20 : 0;
            if (i % 5 == 0) one->cancelled = std::make_shared<std::atomic<bool>>(i % 10 == 0);
            const auto flag = one->cancelled;
            scheduler->enqueue(std::move(one));
            if (flag) *flag = true;
          }
        });
      for (std::thread& thread : threads) thread.join();
    }
    EXPECT_EQ(answers.size(), size_t{kThreads * kEach});
    EXPECT_TRUE(answers.each_once());
    EXPECT_EQ(metrics_.pending(), 0);
  }
}

}  // namespace
}  // namespace anymps::server
