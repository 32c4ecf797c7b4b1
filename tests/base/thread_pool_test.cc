// SPDX-License-Identifier: Apache-2.0
#include "base/thread_pool.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <random>
#include <stdexcept>
#include <thread>
#include <vector>

namespace anymps {
namespace {

using Fn = std::function<void(int64_t)>;

void run(int64_t count, int threads, const Fn& fn) {
  ThreadPool::get().run(
      count, threads, [](void* context, int64_t task) { (*static_cast<const Fn*>(context))(task); },
      const_cast<Fn*>(&fn));
}

// With so many threads, however many cores there are.
class ThreadPoolTest : public ::testing::Test {
 protected:
  void SetUp() override { ThreadPool::get().resize(8); }
  void TearDown() override {
    ThreadPool::set_hook(nullptr);
    ThreadPool::get().resize(before_);
  }

 private:
  int before_ = ThreadPool::get().size();
};

void expect_each_once(int64_t count, int threads) {
  std::vector<std::atomic<int>> seen(static_cast<size_t>(count));
  run(count, threads, [&](int64_t i) { ++seen[static_cast<size_t>(i)]; });
  for (auto& calls : seen) ASSERT_EQ(calls, 1) << count << " tasks, " << threads << " threads";
}

TEST_F(ThreadPoolTest, EachTaskRunsOnce) {
  for (const int64_t count : {0, 1, 2, 3, 7, 31, 32, 33, 1000, 100000})
    for (const int threads : {1, 2, 3, 8, 16, kMostThreads}) expect_each_once(count, threads);
}

TEST_F(ThreadPoolTest, OneThreadIsTheCaller) {
  const auto caller = std::this_thread::get_id();
  run(100, 1, [&](int64_t) { EXPECT_EQ(std::this_thread::get_id(), caller); });
  ThreadPool::get().resize(1);
  run(100, 8, [&](int64_t) { EXPECT_EQ(std::this_thread::get_id(), caller); });
}

// A thread that has begun a task that waits for another one gets it only if another thread comes.
TEST_F(ThreadPoolTest, HelpersCome) {
  std::atomic<int> begun = 0;
  run(4, 4, [&](int64_t) {
    ++begun;
    while (begun < 4) std::this_thread::yield();
  });
  EXPECT_EQ(begun, 4);
}

TEST_F(ThreadPoolTest, NoMoreThreadsThanAskedFor) {
  std::atomic<int> inside = 0, most = 0;
  for (int round = 0; round < 200; ++round)
    run(64, 3, [&](int64_t) {
      const int now = ++inside;
      for (int seen = most; seen < now && !most.compare_exchange_weak(seen, now);) {
      }
      --inside;
    });
  EXPECT_LE(most, 3);
}

TEST_F(ThreadPoolTest, TheFirstExceptionReachesTheCaller) {
  for (int round = 0; round < 500; ++round) {
    std::atomic<int> after = 0;
    try {
      run(1000, 8, [&](int64_t i) {
        if (i == 500) throw std::runtime_error("five hundred");
        ++after;
      });
      FAIL() << "nothing was thrown";
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "five hundred");
    }
    EXPECT_LT(after, 1000);
    expect_each_once(10, 8);  // the pool is as it was
  }
}

TEST_F(ThreadPoolTest, NestedRegionsAndManyCallers) {
  std::atomic<int64_t> sum = 0;
  const auto caller = [&] {
    for (int round = 0; round < 100; ++round)
      run(8, 8,
          [&](int64_t) { run(4, 4, [&](int64_t) { run(3, 3, [&](int64_t i) { sum += i; }); }); });
  };
  std::vector<std::thread> callers;
  for (int i = 0; i < 6; ++i) callers.emplace_back(caller);
  for (std::thread& thread : callers) thread.join();
  EXPECT_EQ(sum, 6 * 100 * 8 * 4 * 3);
}

TEST_F(ThreadPoolTest, MoreCallersThanRegions) {
  std::atomic<int64_t> sum = 0;
  std::vector<std::thread> callers;
  for (int i = 0; i < 100; ++i)
    callers.emplace_back([&] {
      for (int round = 0; round < 20; ++round) run(16, 8, [&](int64_t n) { sum += n; });
    });
  for (std::thread& thread : callers) thread.join();
  EXPECT_EQ(sum, 100 * 20 * 120);
}

TEST_F(ThreadPoolTest, ResizedWhileBusy) {
  std::atomic<bool> stop = false;
  std::thread resizer([&] {
    std::minstd_rand random(1);
    while (!stop) ThreadPool::get().resize(static_cast<int>(random() % 12) + 1);
  });
  for (int round = 0; round < 3000; ++round) expect_each_once(40, 8);
  stop = true;
  resizer.join();
}

TEST_F(ThreadPoolTest, RegionsAfterASleep) {
  for (int round = 0; round < 20; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    expect_each_once(64, 8);
  }
}

// At every point where it hurts, a thread may lose its core for a moment.
TEST_F(ThreadPoolTest, NothingIsLostWhenThreadsLoseTheirCores) {
  ThreadPool::set_hook([] {
    thread_local std::minstd_rand random(
        static_cast<unsigned>(std::hash<std::thread::id>()(std::this_thread::get_id())));
    switch (random() % 64) {
      case 0:
        return std::this_thread::sleep_for(std::chrono::microseconds(random() % 50));
      case 1:
      case 2:
      case 3:
        sched_yield();
    }
  });
  std::vector<std::thread> callers;
  for (int i = 0; i < 2; ++i)
    callers.emplace_back([] {
      for (int round = 0; round < 5000; ++round) expect_each_once(round % 23, round % 9 + 1);
    });
  for (std::thread& thread : callers) thread.join();
}

// Helpers that came late once are asked again, though nobody measures them while they are not.
TEST_F(ThreadPoolTest, LateHelpersAreForgiven) {
  ThreadPool::set_hook([] { std::this_thread::sleep_for(std::chrono::microseconds(100)); });
  for (int round = 0; round < 20; ++round) {
    std::atomic<int> begun = 0;
    run(2, 2, [&](int64_t) {
      ++begun;
      while (begun < 2) std::this_thread::yield();
    });
  }
  ThreadPool::set_hook(nullptr);
  const double late = ThreadPool::get().handoff_ns();
  EXPECT_GT(late, 10'000);
  double now = late;
  for (int question = 0; question < 2000; ++question) now = ThreadPool::get().handoff_ns();
  EXPECT_LT(now, late / 2);
}

int child_result(const std::function<bool()>& works) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    _exit(works() ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}

bool computes() {
  std::atomic<int> begun = 0;
  run(3, 3, [&](int64_t) {
    ++begun;
    while (begun < 3) std::this_thread::yield();
  });
  return begun == 3;
}

TEST_F(ThreadPoolTest, AForkedChildHasThreadsOfItsOwn) {
  EXPECT_TRUE(computes());
  EXPECT_EQ(child_result(computes), 0);
  EXPECT_TRUE(computes());
  // A child of a child, and one that is forked while other threads compute.
  EXPECT_EQ(child_result([] { return child_result(computes) == 0 && computes(); }), 0);
#if defined(__SANITIZE_THREAD__)
  return;  // its own threads lose their way there
#endif
  std::atomic<bool> stop = false;
  std::thread busy([&] {
    while (!stop) run(32, 8, [](int64_t) {});
  });
  for (int round = 0; round < 20; ++round) EXPECT_EQ(child_result(computes), 0);
  stop = true;
  busy.join();
}

// The child has the size of its parent's pool.
TEST_F(ThreadPoolTest, AForkedChildHasTheSameSize) {
  ThreadPool::get().resize(5);
  EXPECT_EQ(child_result([] { return ThreadPool::get().size() == 5; }), 0);
}

TEST_F(ThreadPoolTest, AProcessMayEndWhileThreadsAreBusy) {
  const int status = child_result([] {
    std::thread([] { run(1000000, 8, [](int64_t) { sched_yield(); }); }).detach();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::exit(0);
    return false;
  });
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace anymps
