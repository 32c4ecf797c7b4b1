// SPDX-License-Identifier: Apache-2.0
// Free regions kept for re-use, by size and by age. Sizes are rounded up to buckets, eight to a
// power of two, so that a region fits many requests and wastes at most an eighth. The pool only
// keeps books: the allocator decides what goes in and when it is released.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>

#include "memory/region.h"

namespace anymps {

// The size of the bucket that holds `bytes`, or 0 when no such size exists.
size_t bucket_bytes(size_t bytes);

constexpr size_t kSmallestBucket = 4096;

class BucketPool {
 public:
  // The region's size must be a bucket's. Regions come in the order of their time.
  void put(Region* region, std::chrono::steady_clock::time_point freed_at);

  // The region of this bucket that was freed last (the likeliest to be in a cache), or nullptr.
  Region* take(size_t bucket);
  // The region that was freed first, or nullptr.
  Region* take_oldest();

  const Region* oldest() const { return by_age_.front(); }
  size_t bytes() const { return bytes_; }

 private:
  static constexpr size_t kBuckets = 8 * 64;

  std::array<GroupList, kBuckets> buckets_;
  AgeList by_age_;
  size_t bytes_ = 0;

  void remove(Region* region);
};

}  // namespace anymps
