// SPDX-License-Identifier: Apache-2.0
#include "base/denormals.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cfenv>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/thread_pool.h"

namespace anymps {
namespace {

using float_control::Word;

// Half of the smallest normal float: zero where subnormal results are. And the same as an operand.
float half_of_least() {
  volatile float least = 0x1p-126f;
  return least * 0.5f;
}
float least_subnormals(int count) {
  volatile float one = 0x1p-149f;
  return one * static_cast<float>(count);
}

TEST(Denormals, AScopeDecides) {
  EXPECT_EQ(half_of_least(), 0x1p-127f);
  {
    const DenormalScope flush(Denormals::kFlush);
    EXPECT_TRUE(flushes_denormals());
    EXPECT_EQ(half_of_least(), 0);
    EXPECT_EQ(least_subnormals(1 << 30), 0);
    {
      const DenormalScope keep(Denormals::kKeep);
      EXPECT_FALSE(flushes_denormals());
      EXPECT_EQ(half_of_least(), 0x1p-127f);
      EXPECT_EQ(least_subnormals(1 << 30), 0x1p-119f);
    }
    const DenormalScope same(Denormals::kAsThread);
    EXPECT_EQ(half_of_least(), 0);
  }
  EXPECT_EQ(half_of_least(), 0x1p-127f);
}

// The rounding, and what the register says has happened, are the caller's too.
TEST(Denormals, TheRegisterIsAsBefore) {
  std::feclearexcept(FE_ALL_EXCEPT);
  std::fesetround(FE_UPWARD);
  const Word before = float_control::read();
  for (const Denormals mode : {Denormals::kFlush, Denormals::kKeep}) {
    try {
      const DenormalScope scope(mode);
      EXPECT_EQ(float_control::read() & float_control::kRounding,
                before & float_control::kRounding);
      std::fesetround(FE_TONEAREST);
      EXPECT_NE(half_of_least() / 3, 1);  // not exact
      throw std::runtime_error("in the middle");
    } catch (const std::runtime_error&) {
      EXPECT_EQ(float_control::read(), before);
    }
  }
  std::fesetround(FE_TONEAREST);
}

TEST(Denormals, TheEnvironmentAndTheOption) {
  const auto both = [] {
    return std::pair{resolve(DenormalOption::kDefault), resolve(DenormalOption::kAsCalls)};
  };
  unsetenv("ANYMPS_DENORMALS");
  EXPECT_EQ(both(), std::pair(Denormals::kFlush, Denormals::kAsThread));
  setenv("ANYMPS_DENORMALS", "keep", 1);
  EXPECT_EQ(both(), std::pair(Denormals::kKeep, Denormals::kKeep));
  EXPECT_EQ(resolve(DenormalOption::kFlush), Denormals::kFlush);
  setenv("ANYMPS_DENORMALS", "flush", 1);
  EXPECT_EQ(both(), std::pair(Denormals::kFlush, Denormals::kFlush));
  EXPECT_EQ(resolve(DenormalOption::kKeep), Denormals::kKeep);
  for (const char* wrong : {"1", "flush,keep", "Flush"}) {
    setenv("ANYMPS_DENORMALS", wrong, 1);
    try {
      resolve(DenormalOption::kDefault);
      ADD_FAILURE() << wrong;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("ANYMPS_DENORMALS='" + std::string(wrong) + "'"),
                std::string::npos)
          << error.what();
    }
  }
  unsetenv("ANYMPS_DENORMALS");
}

using EachTask = std::function<void(int64_t)>;

void run_each(int64_t count, int threads, const EachTask& fn) {
  ThreadPool::get().run(
      count, threads,
      [](void* context, int64_t task) { (*static_cast<const EachTask*>(context))(task); },
      const_cast<EachTask*>(&fn));
}

constexpr Word kMode = float_control::kFlush | float_control::kRounding;

// The modes of all threads that work for a region, each of which has a task.
std::set<Word> modes_of_threads(int threads) {
  std::mutex mutex;
  std::set<Word> modes;
  std::atomic<int> begun = 0;
  run_each(threads, threads, [&](int64_t) {
    ++begun;
    while (begun < threads) std::this_thread::yield();
    const std::lock_guard lock(mutex);
    modes.insert(float_control::read() & kMode);
  });
  return modes;
}

class DenormalsOfThreads : public ::testing::Test {
 protected:
  void SetUp() override { ThreadPool::get().resize(4); }
  void TearDown() override { ThreadPool::get().resize(before_); }
  static constexpr int kThreads = 4;

 private:
  int before_ = ThreadPool::get().size();
};

TEST_F(DenormalsOfThreads, WhoHelpsComputesAsTheCaller) {
  const Word keep = float_control::read() & kMode;
  for (int round = 0; round < 5; ++round) {
    EXPECT_EQ(modes_of_threads(kThreads), std::set<Word>{keep});
    {
      const DenormalScope flush(Denormals::kFlush);
      EXPECT_EQ(modes_of_threads(kThreads), std::set<Word>{keep | float_control::kFlush});
    }
    std::fesetround(FE_DOWNWARD);
    EXPECT_EQ(modes_of_threads(kThreads), std::set<Word>{float_control::read() & kMode});
    std::fesetround(FE_TONEAREST);
  }
}

TEST_F(DenormalsOfThreads, AfterAnExceptionToo) {
  for (int round = 0; round < 20; ++round) {
    const Word before = float_control::read();
    try {
      const DenormalScope flush(Denormals::kFlush);
      run_each(100, kThreads, [](int64_t i) {
        if (i == 50) throw std::runtime_error("fifty");
      });
      FAIL();
    } catch (const std::runtime_error&) {
    }
    EXPECT_EQ(float_control::read(), before);
    EXPECT_EQ(modes_of_threads(kThreads), std::set<Word>{before & kMode});
  }
}

// A task may have a mode of its own for the regions inside; the tasks beside it notice nothing.
TEST_F(DenormalsOfThreads, RegionsInsideAndCallersBesideEachOther) {
  std::atomic<int> wrong = 0;
  const auto caller = [&](Denormals mode, Denormals inner) {
    const DenormalScope scope(mode);
    const bool outside = mode == Denormals::kFlush, inside = inner == Denormals::kFlush;
    for (int round = 0; round < 200; ++round)
      run_each(8, kThreads, [&](int64_t) {
        wrong += flushes_denormals() != outside;
        {
          const DenormalScope own(inner);
          run_each(4, 2, [&](int64_t) { wrong += flushes_denormals() != inside; });
        }
        wrong += flushes_denormals() != outside;
      });
  };
  std::vector<std::thread> callers;
  for (const Denormals mode : {Denormals::kKeep, Denormals::kFlush})
    for (const Denormals inner : {Denormals::kKeep, Denormals::kFlush})
      callers.emplace_back(caller, mode, inner);
  for (std::thread& thread : callers) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST_F(DenormalsOfThreads, InAForkedChild) {
  const DenormalScope flush(Denormals::kFlush);
  const std::set<Word> expected = {float_control::read() & kMode};
  EXPECT_EQ(modes_of_threads(kThreads), expected);
  const pid_t child = fork();
  if (child == 0) _exit(modes_of_threads(kThreads) == expected ? 0 : 1);
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace anymps
