// SPDX-License-Identifier: Apache-2.0
// The size of runs follows what is measured.
#include "serving/chunks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <set>

namespace anymps::serving {
namespace {

// Runs `batches` batches of `rows`, where a run of n rows takes cost(n).
void serve(Chunks& chunks, int64_t rows, int batches, const std::function<double(int64_t)>& cost) {
  for (int i = 0; i < batches; ++i) {
    const int64_t most = chunks.choose(rows);
    ASSERT_GE(most, 1);
    ASSERT_LE(most, rows);
    for (int64_t left = rows; left > 0; left -= most) {
      const int64_t now = std::min(most, left);
      chunks.record(now, static_cast<uint64_t>(cost(now)));
    }
  }
}

TEST(Chunks, GrowWhereARunHasACostOfItsOwn) {
  Chunks chunks(-1);
  serve(chunks, 32, 60, [](int64_t n) { return 10000.0 + 100.0 * static_cast<double>(n); });
  EXPECT_EQ(chunks.best(), 32);
  EXPECT_EQ(chunks.choose(23), 23);
  EXPECT_EQ(chunks.choose(1), 1);
}

TEST(Chunks, StayAtOneWhereRowsGetSlower) {
  Chunks chunks(-1);
  serve(chunks, 32, 60,
        [](int64_t n) { return 1000.0 * static_cast<double>(n) * (n > 1 ? 1.5 : 1); });
  EXPECT_EQ(chunks.best(), 1);
  // Nor where there is nothing to gain.
  Chunks same(-1);
  serve(same, 32, 60, [](int64_t n) { return 1000.0 * static_cast<double>(n); });
  EXPECT_EQ(same.best(), 1);
}

TEST(Chunks, StopInBetween) {
  Chunks chunks(-1);
  serve(chunks, 32, 100,
        [](int64_t n) { return 4000.0 + static_cast<double>(n) * (n > 8 ? 3000 : 1000); });
  EXPECT_EQ(chunks.best(), 8);
}

TEST(Chunks, FollowWhenTimesChange) {
  Chunks chunks(-1);
  serve(chunks, 16, 60, [](int64_t n) { return 10000.0 + static_cast<double>(n); });
  EXPECT_EQ(chunks.best(), 16);
  serve(chunks, 16, 4000,
        [](int64_t n) { return 1000.0 * static_cast<double>(n) * static_cast<double>(n); });
  EXPECT_EQ(chunks.best(), 1);
}

TEST(Chunks, Fixed) {
  Chunks all(0), four(4);
  EXPECT_EQ(all.choose(17), 17);
  EXPECT_EQ(four.choose(17), 4);
  EXPECT_EQ(four.choose(3), 3);
}

TEST(Chunks, LongRunsAreWorthAThread) {
  for (const int64_t fixed : {int64_t{-1}, int64_t{4}}) {
    Chunks chunks(fixed);
    EXPECT_FALSE(chunks.worth_a_thread(4));  // not before it is known
    chunks.record(4, 40'000);
    EXPECT_FALSE(chunks.worth_a_thread(4));
    for (int i = 0; i < 20; ++i) chunks.record(4, 4'000'000);
    EXPECT_TRUE(chunks.worth_a_thread(4));
    EXPECT_FALSE(chunks.worth_a_thread(1));
  }
}

}  // namespace
}  // namespace anymps::serving
