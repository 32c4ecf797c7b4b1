// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/threads.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "drivers/driver.h"

namespace anymps {
namespace {

TEST(ParallelFor, CoversEveryItemOnce) {
  get_driver("cpu").use_threads(2);
  for (int64_t n : {0, 1, 2, 3, 7, 1000}) {
    std::vector<std::atomic<int>> seen(static_cast<size_t>(n));
    parallel_for(0, n, 1e6, [&](int64_t b, int64_t e) {
      for (int64_t i = b; i < e; ++i) ++seen[static_cast<size_t>(i)];
    });
    for (auto& count : seen) EXPECT_EQ(count, 1);
  }
}

TEST(ThreadScope, TheCallerHasItsNumberAgain) {
  Driver& cpu = get_driver("cpu");
  const int before = current_threads();
  {
    const ThreadScope outer(cpu, 1);
    EXPECT_EQ(current_threads(), 1);
    const ThreadScope inner(cpu, 0);  // no more than around it
    EXPECT_EQ(current_threads(), 1);
  }
  EXPECT_EQ(current_threads(), before);
}

TEST(ParallelFor, CheapWorkStaysOnTheCaller) {
  int calls = 0;
  parallel_for(0, 1000, 1.0, [&](int64_t b, int64_t e) {
    ++calls;
    EXPECT_EQ(e - b, 1000);
  });
  EXPECT_EQ(calls, 1);
}

TEST(ParallelFor, ThrowsWhatTheWorkThrew) {
  EXPECT_THROW(parallel_for(0, 10, 1e6,
                            [](int64_t b, int64_t e) {
                              if (b <= 9 && 9 < e) fail(Code::kInternal, "[test] item nine");
                            }),
               Error);
}

TEST(ParallelFor, NestedCallsRun) {
  std::atomic<int> sum = 0;
  parallel_for(0, 4, 1e6, [&](int64_t b, int64_t e) {
    for (int64_t i = b; i < e; ++i)
      parallel_for(0, 10, 1e6, [&](int64_t b2, int64_t e2) { sum += static_cast<int>(e2 - b2); });
  });
  EXPECT_EQ(sum, 40);
}

TEST(CpuDriver, SaysWhatItRunsOn) {
  Driver& driver = get_driver("cpu");
  EXPECT_NE(driver.description().find("oneDNN 3."), std::string::npos);
  EXPECT_TRUE(driver.traits().prefers_nhwc);
  EXPECT_GE(driver.max_threads(), 1);
}

}  // namespace
}  // namespace anymps
