// SPDX-License-Identifier: Apache-2.0
// The queue of the dynamic batcher: levels, limits, timeouts. Time is what the test says.
#include "server/scheduling/queue.h"

#include <gtest/gtest.h>

#include "scheduling/fake_instance.h"

namespace anymps::server {
namespace {

using test::Answers;
using test::request;

class QueueTest : public ::testing::Test {
 protected:
  static RequestQueue make(const std::string& text) {
    inference::ModelDynamicBatching config;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &config)) << text;
    return RequestQueue(config);
  }
  bool push(RequestQueue& queue, const std::string& id, uint64_t now, uint64_t priority = 0,
            uint64_t timeout_us = 0) {
    RequestPtr one = request(answers_, id);
    one->priority = priority;
    one->timeout_us = timeout_us;
    one->cancelled = std::make_shared<std::atomic<bool>>(id == "gone");
    const bool accepted = queue.push(one, 1, now);
    EXPECT_EQ(accepted, !one);
    return accepted;
  }
  static std::string order(RequestQueue& queue) {
    std::string result;
    queue.visit([&](RequestQueue::Entry& entry) {
      result += entry.request->id;
      return true;
    });
    return result;
  }
  static std::string ids(std::vector<RequestPtr>& requests) {
    std::string result;
    for (RequestPtr& one : requests) result += one->id;
    requests.clear();
    return result;
  }
  Answers answers_;
  std::vector<RequestPtr> out_;
};

TEST_F(QueueTest, LevelsAreServedFromTheHighest) {
  RequestQueue queue = make("priority_levels: 3 default_priority_level: 2");
  for (const auto& [id, priority] : std::vector<std::pair<const char*, uint64_t>>{
           {"a", 3}, {"b", 0}, {"c", 1}, {"d", 2}, {"e", 1}, {"f", 4}})
    push(queue, id, 0, priority);
  EXPECT_EQ(queue.size(), 6u);
  EXPECT_EQ(queue.rows(), 6u);
  EXPECT_EQ(order(queue), "cebdfa");
  std::string popped;
  while (!queue.empty()) popped += queue.pop().request->id;
  EXPECT_EQ(popped, "cebdfa");
  EXPECT_EQ(queue.rows(), 0u);
}

TEST_F(QueueTest, LevelsHaveTheirOwnLimits) {
  RequestQueue queue = make(
      "priority_levels: 2 default_priority_level: 1 default_queue_policy { max_queue_size: 1 } "
      "priority_queue_policy { key: 2 value { max_queue_size: 2 } }");
  EXPECT_TRUE(push(queue, "a", 0, 1));
  EXPECT_FALSE(push(queue, "b", 0, 1));
  EXPECT_TRUE(push(queue, "c", 0, 2));
  EXPECT_TRUE(push(queue, "d", 0, 2));
  EXPECT_FALSE(push(queue, "e", 0, 2));
  queue.pop();
  EXPECT_TRUE(push(queue, "f", 0, 1));
}

TEST_F(QueueTest, LateRequestsAreRejected) {
  RequestQueue queue = make("default_queue_policy { default_timeout_microseconds: 10 }");
  push(queue, "a", 1000);
  push(queue, "b", 2000);
  push(queue, "c", 3000);
  EXPECT_EQ(queue.next_deadline(), 11000u);
  queue.expire(10999, out_);
  EXPECT_TRUE(out_.empty());
  queue.expire(12500, out_);
  EXPECT_EQ(ids(out_), "ab");
  EXPECT_EQ(order(queue), "c");
  EXPECT_EQ(queue.next_deadline(), 13000u);
  queue.pop();
  EXPECT_EQ(queue.next_deadline(), 0u);
}

TEST_F(QueueTest, RequestsMayOnlyShortenTheTimeout) {
  RequestQueue queue = make(
      "default_queue_policy { default_timeout_microseconds: 10 allow_timeout_override: true }");
  push(queue, "a", 0, 0, 100);
  push(queue, "b", 0, 0, 5);
  push(queue, "c", 0);
  queue.expire(5000, out_);
  EXPECT_EQ(ids(out_), "b");
  queue.expire(10000, out_);
  EXPECT_EQ(ids(out_), "ac");

  RequestQueue fixed = make("default_queue_policy { default_timeout_microseconds: 10 }");
  push(fixed, "a", 0, 0, 5);
  EXPECT_EQ(fixed.next_deadline(), 10000u);

  RequestQueue open = make("default_queue_policy { allow_timeout_override: true }");
  EXPECT_TRUE(open.has_timeouts());
  push(open, "a", 0);
  EXPECT_EQ(open.next_deadline(), 0u);
  push(open, "b", 0, 0, UINT64_MAX);  // does not overflow
  EXPECT_GT(open.next_deadline(), uint64_t{1} << 61);
}

TEST_F(QueueTest, DelayedRequestsGoBehindTheirLevel) {
  RequestQueue queue = make(
      "priority_levels: 2 default_priority_level: 1 default_queue_policy { timeout_action: DELAY "
      "default_timeout_microseconds: 10 }");
  push(queue, "a", 0, 1);
  push(queue, "x", 5000, 2);
  push(queue, "b", 5000, 1);
  queue.expire(10000, out_);
  EXPECT_TRUE(out_.empty());
  push(queue, "c", 11000, 1);
  EXPECT_EQ(order(queue), "bcax");
  EXPECT_EQ(queue.size(), 4u);
  queue.expire(30000, out_);
  EXPECT_EQ(order(queue), "abcx");  // all late: as they became so
  EXPECT_EQ(queue.next_deadline(), 0u);
}

TEST_F(QueueTest, CancelledRequestsLeaveFromTheMiddle) {
  RequestQueue queue = make("default_queue_policy { default_timeout_microseconds: 10 }");
  for (const char* id : {"a", "gone", "b", "gone"}) push(queue, id, 0);
  queue.remove_cancelled(out_);
  EXPECT_EQ(ids(out_), "gonegone");
  EXPECT_EQ(order(queue), "ab");
  EXPECT_EQ(queue.size(), 2u);
  queue.pop();
  EXPECT_EQ(order(queue), "b");
  queue.expire(20000, out_);
  EXPECT_EQ(ids(out_), "b");
  EXPECT_TRUE(queue.empty());
}

TEST_F(QueueTest, DeadlinesOfRequestsThatLeftDoNotPileUp) {
  RequestQueue queue = make("default_queue_policy { default_timeout_microseconds: 1000000 }");
  for (uint64_t i = 0; i < 10000; ++i) {
    push(queue, "a", i);
    if (i % 2) queue.pop(), queue.pop();
  }
  EXPECT_EQ(queue.next_deadline(), 0u);
  push(queue, "last", 77);
  EXPECT_EQ(queue.next_deadline(), 1000000077u);
  queue.clear(out_);
  EXPECT_EQ(ids(out_), "last");
}

}  // namespace
}  // namespace anymps::server
