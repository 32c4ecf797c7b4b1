// SPDX-License-Identifier: Apache-2.0
// Mutexes in a child: free, with what they guard whole, whoever held them when the process forked.
#include "base/fork.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <thread>

#include "support/child.h"

namespace anymps {
namespace {

using testing::end_of_child;

TEST(Fork, WaitsForAShortLock) {
  ForkMutex mutex;
  int first = 0, second = 0;
  std::promise<void> locked;
  std::thread holder([&] {
    const std::lock_guard lock(mutex);
    first = 1;
    locked.set_value();
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    second = 1;
  });
  locked.get_future().wait();
  EXPECT_EQ(end_of_child([&] {
              const std::lock_guard lock(mutex);
              return first == 1 && second == 1;
            }),
            "good");
  holder.join();
  EXPECT_TRUE(mutex.try_lock());
  mutex.unlock();
}

TEST(Fork, ALongLockIsFreeAndWhatItGuardsIsMadeAnew) {
  int guarded = 0, calls = 0;
  bool was_whole = true;
  ForkMutex mutex(ForkMutex::kLong, [&](bool whole) {
    ++calls;
    was_whole = whole;
    if (!whole) guarded = 0;
  });
  std::promise<void> locked, go_on;
  std::thread holder([&] {
    const std::lock_guard lock(mutex);
    guarded = 1;
    locked.set_value();
    go_on.get_future().wait();
    guarded = 2;
  });
  locked.get_future().wait();
  EXPECT_EQ(end_of_child([&] {
              const std::lock_guard lock(mutex);
              return calls == 1 && !was_whole && guarded == 0;
            }),
            "good");
  go_on.set_value();
  holder.join();
  EXPECT_EQ(guarded, 2);
  EXPECT_EQ(calls, 0);
  EXPECT_EQ(end_of_child([&] { return calls == 1 && was_whole && guarded == 2; }), "good");
}

// The fork takes both, in whatever order it finds them, while others take one inside the other.
TEST(Fork, KnowsNoOrderOfLocks) {
  ForkMutex outer, inner;
  int64_t a = 0, b = 0;
  std::atomic<bool> stop{false};
  std::thread one([&] {
    while (!stop) {
      const std::lock_guard lock(outer);
      const std::lock_guard more(inner);
      ++a, ++b;
    }
  });
  std::thread other([&] {  // the list of mutexes changes under a lock, too
    while (!stop) {
      const std::lock_guard lock(outer);
      const auto made = std::make_unique<ForkMutex>();
    }
  });
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(end_of_child([&] {
                const std::lock_guard lock(inner);
                const std::lock_guard more(outer);
                return a == b && std::make_unique<ForkMutex>()->try_lock();
              }),
              "good");
  }
  stop = true;
  one.join();
  other.join();
}

TEST(Fork, CountsGenerations) {
  const unsigned before = fork_generation();
  EXPECT_EQ(end_of_child([&] {
              return fork_generation() == before + 1 &&
                     end_of_child([&] { return fork_generation() == before + 2; }) == "good";
            }),
            "good");
  EXPECT_EQ(fork_generation(), before);
}

}  // namespace
}  // namespace anymps
