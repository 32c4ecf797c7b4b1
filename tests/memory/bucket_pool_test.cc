// SPDX-License-Identifier: Apache-2.0
#include "memory/bucket_pool.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

namespace anymps {
namespace {

using Time = std::chrono::steady_clock::time_point;

TEST(BucketBytes, WastesAtMostAnEighth) {
  for (int power = 12; power < 62; ++power) {
    for (size_t part = 0; part < 64; ++part) {
      for (size_t more : {0, 1, 2}) {
        size_t bytes = (size_t{1} << power) + (size_t{1} << power) / 64 * part + more;
        size_t bucket = bucket_bytes(bytes);
        ASSERT_GE(bucket, bytes);
        ASSERT_LE(bucket - bytes, bytes / 8) << bytes;
        ASSERT_EQ(bucket_bytes(bucket), bucket) << bytes;
      }
    }
  }
}

TEST(BucketBytes, HasEightStepsToAPowerOfTwo) {
  constexpr size_t kMiB = 1 << 20;
  EXPECT_EQ(bucket_bytes(8 * kMiB), 8 * kMiB);
  EXPECT_EQ(bucket_bytes(8 * kMiB + 1), 9 * kMiB);
  EXPECT_EQ(bucket_bytes(15 * kMiB + 1), 16 * kMiB);
  EXPECT_EQ(bucket_bytes(0), kSmallestBucket);
}

TEST(BucketBytes, SaysWhenThereIsNoSuchSize) {
  constexpr size_t kMax = std::numeric_limits<size_t>::max();
  EXPECT_EQ(bucket_bytes(kMax), 0u);
  EXPECT_EQ(bucket_bytes(kMax - 4096), 0u);
  EXPECT_EQ(bucket_bytes(kMax / 2 + 1), 0u);
  EXPECT_EQ(bucket_bytes(kMax / 2), kMax / 2 + 1);
}

TEST(BucketPool, TakesTheNewestOfABucketAndTheOldestOfAll) {
  Region a{.bytes = 8192}, b{.bytes = 4096}, c{.bytes = 8192}, d{.bytes = 8192};
  BucketPool pool;
  int time = 0;
  for (Region* region : {&a, &b, &c, &d}) pool.put(region, Time(std::chrono::seconds(++time)));
  EXPECT_EQ(pool.bytes(), 3u * 8192 + 4096);
  EXPECT_EQ(pool.oldest(), &a);
  EXPECT_EQ(pool.oldest()->freed_at, Time(std::chrono::seconds(1)));

  EXPECT_EQ(pool.take(8192), &d);
  EXPECT_EQ(pool.take_oldest(), &a);
  EXPECT_EQ(pool.take_oldest(), &b);
  EXPECT_EQ(pool.take(4096), nullptr);
  EXPECT_EQ(pool.take(8192), &c);
  EXPECT_EQ(pool.take(8192), nullptr);
  EXPECT_EQ(pool.take_oldest(), nullptr);
  EXPECT_EQ(pool.bytes(), 0u);
}

TEST(BucketPool, KeepsNeighbouringBucketsApart) {
  // All buckets of all sizes: each region must come back from its own bucket only.
  BucketPool pool;
  size_t count = 0;
  for (size_t bucket = kSmallestBucket; bucket && bucket < (size_t{1} << 62);
       bucket = bucket_bytes(bucket + 1)) {
    Region region{.bytes = bucket};
    pool.put(&region, Time());
    ASSERT_EQ(pool.take(bucket_bytes(bucket + 1)), nullptr) << bucket;
    ASSERT_EQ(pool.take(bucket), &region) << bucket;
    ++count;
  }
  EXPECT_EQ(count, 8u * 50);
}

}  // namespace
}  // namespace anymps
