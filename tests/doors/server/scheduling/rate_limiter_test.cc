// SPDX-License-Identifier: Apache-2.0
// Resources that instances share: who may run, and in which order.
#include "server/scheduling/rate_limiter.h"

#include <gtest/gtest.h>

#include <atomic>
#include <optional>
#include <thread>

#include "scheduling/fake_instance.h"

namespace anymps::server {
namespace {

using test::Answers;
using test::config;
using test::FakeInstance;
using test::Gate;
using test::Log;
using test::request;

inference::ModelInstanceGroup group(const std::string& text) {
  inference::ModelInstanceGroup result;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &result)) << text;
  return result;
}

std::string error(RateLimiter& limiter, const inference::ModelInstanceGroup& wish) {
  try {
    limiter.add(wish);
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::kInvalidArgument);
    return e.what();
  }
  return "";
}

TEST(RateLimiter, RefusesWishesThatCanNeverBeMet) {
  RateLimiter limiter(true, {{"R1", 3}, {"R2:1", 2}});
  EXPECT_EQ(error(limiter, group("rate_limiter { resources { name: 'R1' count: 4 } }")),
            "Resource count for \"R1\" is limited to 3 which will prevent scheduling of one or "
            "more model instances, the minimum required count is 4");
  EXPECT_EQ(error(limiter, group("rate_limiter { resources { name: 'R1' count: 3 } }")), "");
  EXPECT_NE(error(limiter, group("gpus: 1 rate_limiter { resources { name: 'R2' count: 3 } }")),
            "");
  EXPECT_EQ(error(limiter, group("gpus: 0 rate_limiter { resources { name: 'R2' count: 3 } }")),
            "");
  EXPECT_EQ(error(limiter, group("rate_limiter { resources { name: 'R3' count: 1 } "
                                 "resources { name: 'R3' count: 1 global: true } }")),
            "Resource \"R3\" is present as both global and device-specific resource in the model "
            "configuration.");
  RateLimiter off(false, {{"R1", 1}});
  EXPECT_EQ(error(off, group("rate_limiter { resources { name: 'R1' count: 4 } }")), "");
}

// The threads of a test try to get a permit; `held` says how many have one.
struct Runner {
  Runner(RateLimiter& limiter, inference::ModelInstanceGroup wish, uint64_t executions = 0)
      : wish_(std::move(wish)), executions_(executions), thread_([this, &limiter] {
          RateLimiter::Permit permit(limiter, wish_, executions_);
          gate_.pass();
        }) {}
  ~Runner() { finish(); }
  void wait_running() { gate_.wait_arrived(1); }
  bool running() const { return gate_.arrived() == 1; }
  void finish() {
    gate_.open_for_good();
    if (thread_.joinable()) thread_.join();
  }
  Gate gate_;
  inference::ModelInstanceGroup wish_;
  uint64_t executions_;
  std::thread thread_;
};

TEST(RateLimiter, DevicesHaveTheirOwnUnlessGlobal) {
  RateLimiter limiter(true, {});
  const auto on = [&](int device, bool global) {
    auto wish = group("rate_limiter { resources { name: 'R' count: 2 } }");
    wish.add_gpus(device);
    wish.mutable_rate_limiter()->mutable_resources(0)->set_global(global);
    limiter.add(wish);
    return wish;
  };
  const auto first = on(0, false), second = on(1, false);
  const auto third = on(0, true), fourth = on(1, true);
  Runner a(limiter, first);
  a.wait_running();
  Runner b(limiter, second);  // another device
  b.wait_running();
  Runner c(limiter, third);
  c.wait_running();
  Runner d(limiter, fourth);  // the same global resource
  EXPECT_FALSE(d.running());
  c.finish();
  d.wait_running();
}

TEST(RateLimiter, TheLowestExecutionsTimesPriorityGoesFirst) {
  RateLimiter limiter(true, {{"R", 1}});
  auto wish = group("rate_limiter { resources { name: 'R' count: 1 global: true } }");
  limiter.add(wish);
  uint64_t count = 0;
  auto busy = std::make_optional<RateLimiter::Permit>(limiter, wish, count);
  EXPECT_EQ(count, 1u);
  std::mutex mutex;
  std::vector<std::string> order;
  std::vector<std::thread> threads;
  const auto wait = [&](std::string name, uint64_t executions, uint32_t priority) {
    auto own = wish;
    own.mutable_rate_limiter()->set_priority(priority);
    threads.emplace_back([&, own, name, executions] {
      uint64_t mine = executions;
      RateLimiter::Permit permit(limiter, own, mine);
      std::lock_guard lock(mutex);
      order.push_back(name);
    });
  };
  wait("6 * 2", 6, 2);
  wait("10 * 1", 10, 1);
  wait("4 * 2", 4, 2);
  while (limiter.waiting() < 3) std::this_thread::yield();
  busy.reset();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(order, (std::vector<std::string>{"4 * 2", "10 * 1", "6 * 2"}));
}

TEST(RateLimiter, NobodyIsStarvedAndOthersPass) {
  RateLimiter limiter(true, {{"R", 2}, {"S", 1}});
  const auto one = group("rate_limiter { resources { name: 'R' count: 1 global: true } }");
  const auto both = group("rate_limiter { resources { name: 'R' count: 2 global: true } }");
  const auto other = group("rate_limiter { resources { name: 'S' count: 1 global: true } }");
  for (const auto& wish : {one, both, other}) limiter.add(wish);
  Runner small(limiter, one);
  small.wait_running();
  Runner large(limiter, both, 0);
  while (limiter.waiting() < 1) std::this_thread::yield();
  Runner late(limiter, one, 5);  // there is one left, but it is kept for `large`
  while (limiter.waiting() < 2) std::this_thread::yield();
  Runner passing(limiter, other, 9);
  passing.wait_running();
  EXPECT_FALSE(large.running());
  EXPECT_FALSE(late.running());
  small.finish();
  large.wait_running();
  EXPECT_FALSE(late.running());
  large.finish();
  late.wait_running();
}

TEST(RateLimiter, ModelsShareWhatTheirGroupsName) {
  RateLimiter limiter(true, {{"R", 1}});
  ModelMetrics metrics;
  Answers answers;
  std::atomic<int> running{0}, most{0};
  const auto run = [&](Request&) {
    const int now = ++running;
    for (int seen = most; now > seen && !most.compare_exchange_weak(seen, now);) {
    }
    std::this_thread::yield();
    --running;
    return Response{};
  };
  constexpr int kModels = 3, kEach = 100;
  {
    std::vector<std::unique_ptr<Scheduler>> schedulers;
    for (int i = 0; i < kModels; ++i) {
      std::vector<std::unique_ptr<Instance>> two;
      for (int k = 0; k < 2; ++k)
        two.push_back(std::make_unique<FakeInstance>(
            nullptr, nullptr, run,
            "rate_limiter { resources { name: 'R' count: 1 global: true } priority: 2 }"));
      schedulers.push_back(
          make_scheduler(config("max_batch_size: 4"), std::move(two), limiter, metrics));
    }
    for (int k = 0; k < kEach; ++k)
      for (int i = 0; i < kModels; ++i)
        schedulers[static_cast<size_t>(i)]->enqueue(
            request(answers, std::to_string(i) + "/" + std::to_string(k)));
    answers.wait(kModels * kEach);
  }
  EXPECT_EQ(most, 1);
  EXPECT_TRUE(answers.each_once());
}

}  // namespace
}  // namespace anymps::server
