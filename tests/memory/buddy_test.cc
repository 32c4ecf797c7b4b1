// SPDX-License-Identifier: Apache-2.0
#include "memory/buddy.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "base/error.h"

namespace anymps {
namespace {

TEST(Buddy, OrderIsThatOfTheSmallestBlockThatFits) {
  EXPECT_EQ(Buddy::order_of(0, 256), 0);
  EXPECT_EQ(Buddy::order_of(1, 256), 0);
  EXPECT_EQ(Buddy::order_of(256, 256), 0);
  EXPECT_EQ(Buddy::order_of(257, 256), 1);
  EXPECT_EQ(Buddy::order_of(512, 256), 1);
  EXPECT_EQ(Buddy::order_of(513, 256), 2);
  EXPECT_EQ(Buddy::order_of(1 << 20, 256), 12);
}

TEST(Buddy, SplitsAndCoalesces) {
  Buddy buddy(1024, 256);
  EXPECT_TRUE(buddy.is_free());
  EXPECT_EQ(buddy.largest_order(), 2);
  EXPECT_EQ(buddy.allocate(0), 0u);
  EXPECT_EQ(buddy.largest_order(), 1);
  EXPECT_EQ(buddy.allocate(1), 512u);
  EXPECT_EQ(buddy.largest_order(), 0);
  EXPECT_EQ(buddy.allocate(1), std::nullopt);
  EXPECT_EQ(buddy.allocate(0), 256u);
  EXPECT_EQ(buddy.largest_order(), -1);
  EXPECT_EQ(buddy.allocate(0), std::nullopt);
  buddy.free(0, 0);
  EXPECT_EQ(buddy.largest_order(), 0);
  buddy.free(512, 1);
  EXPECT_EQ(buddy.largest_order(), 1);
  buddy.free(256, 0);
  EXPECT_TRUE(buddy.is_free());
  EXPECT_EQ(buddy.allocate(2), 0u);
}

TEST(Buddy, PrefersTheTighterHole) {
  Buddy buddy(2048, 256);
  ASSERT_EQ(buddy.allocate(1), 0u);
  ASSERT_EQ(buddy.allocate(1), 512u);
  ASSERT_EQ(buddy.allocate(0), 1024u);
  ASSERT_EQ(buddy.allocate(1), 1536u);
  // A hole of one block at 1280 and one of two at 0: the small request must not break the large
  // one.
  buddy.free(0, 1);
  EXPECT_EQ(buddy.allocate(0), 1280u);
}

TEST(Buddy, RefusesSizesThatAreNotPowersOfTwo) {
  EXPECT_THROW(Buddy(1000, 256), Error);
  EXPECT_THROW(Buddy(1024, 100), Error);
  EXPECT_THROW(Buddy(256, 1024), Error);
}

TEST(Buddy, RandomBlocksNeverOverlapAndAllComeBack) {
  constexpr size_t kSlab = 1 << 16, kMin = 64;
  std::mt19937 random(1);
  Buddy buddy(kSlab, kMin);
  std::map<size_t, int> live;  // offset -> order
  for (int step = 0; step < 20000; ++step) {
    if (live.empty() || random() % 5 < 3) {
      int order = static_cast<int>(random() % 8);
      auto offset = buddy.allocate(order);
      if (!offset) {
        ASSERT_LT(buddy.largest_order(), order);
        continue;
      }
      size_t size = kMin << order;
      ASSERT_EQ(*offset % size, 0u);
      ASSERT_LE(*offset + size, kSlab);
      auto next = live.lower_bound(*offset);
      if (next != live.end()) {
        ASSERT_LE(*offset + size, next->first);
      }
      if (next != live.begin()) {
        auto previous = std::prev(next);
        ASSERT_LE(previous->first + (kMin << previous->second), *offset);
      }
      live[*offset] = order;
    } else {
      auto it = std::next(live.begin(), static_cast<std::ptrdiff_t>(random() % live.size()));
      buddy.free(it->first, it->second);
      live.erase(it);
    }
  }
  for (auto [offset, order] : live) buddy.free(offset, order);
  EXPECT_TRUE(buddy.is_free());
}

}  // namespace
}  // namespace anymps
