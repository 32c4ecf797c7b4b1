// SPDX-License-Identifier: Apache-2.0
#include "memory/bucket_pool.h"

#include <algorithm>
#include <bit>
#include <limits>

namespace anymps {

namespace {

constexpr int kStepBits = 3;

// With 2^k < bytes <= 2^(k+1), buckets are 2^(k-3) bytes apart.
int step_shift(size_t bytes) { return static_cast<int>(std::bit_width(bytes - 1)) - 1 - kStepBits; }

size_t bucket_index(size_t bucket) {
  int shift = step_shift(bucket);
  size_t step = ((bucket - 1) >> shift) & ((1 << kStepBits) - 1);
  return (static_cast<size_t>(shift) << kStepBits) + step;
}

}  // namespace

size_t bucket_bytes(size_t bytes) {
  if (bytes > std::numeric_limits<size_t>::max() / 2) return 0;
  bytes = std::max(bytes, kSmallestBucket);
  size_t step = size_t{1} << step_shift(bytes);
  return (bytes + step - 1) & ~(step - 1);
}

void BucketPool::put(Region* region, std::chrono::steady_clock::time_point freed_at) {
  region->freed_at = freed_at;
  buckets_[bucket_index(region->bytes)].push_back(region);
  by_age_.push_back(region);
  bytes_ += region->bytes;
}

Region* BucketPool::take(size_t bucket) {
  Region* region = buckets_[bucket_index(bucket)].back();
  if (region) remove(region);
  return region;
}

Region* BucketPool::take_oldest() {
  Region* region = by_age_.front();
  if (region) remove(region);
  return region;
}

void BucketPool::remove(Region* region) {
  buckets_[bucket_index(region->bytes)].remove(region);
  by_age_.remove(region);
  bytes_ -= region->bytes;
}

}  // namespace anymps
