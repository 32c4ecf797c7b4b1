// SPDX-License-Identifier: Apache-2.0
#include "memory/allocator.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <limits>
#include <set>

#include "base/error.h"
#include "fakes.h"

namespace anymps {
namespace {

using std::chrono::milliseconds;

constexpr size_t kMiB = 1 << 20;
constexpr size_t kSlab = 8 * kMiB;

// The message of the out-of-memory error, or "" when there was none.
std::string out_of_memory(Allocator& allocator, size_t bytes) {
  try {
    allocator.allocate(bytes);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kOutOfMemory);
    return error.what();
  }
  return "";
}

TEST(Allocator, CountsExactly) {
  FakeDevice device;
  Allocator& allocator = *device.allocator;
  BufferRef small = allocator.allocate(1000);
  BufferRef large = allocator.allocate(3 * kMiB - 5);
  MemoryStats stats = allocator.stats();
  EXPECT_EQ(stats.allocated, 1000 + 3 * kMiB - 5);
  EXPECT_EQ(stats.reserved, kSlab + 3 * kMiB);
  EXPECT_EQ(stats.reserved, device.books->bytes);
  EXPECT_EQ(stats.pooled, 0u);
  EXPECT_EQ(stats.allocs, 2u);
  EXPECT_EQ(stats.raw_allocs, 2u);

  large.reset();
  stats = allocator.stats();
  EXPECT_EQ(stats.allocated, 1000u);
  EXPECT_EQ(stats.reserved, kSlab + 3 * kMiB);
  EXPECT_EQ(stats.pooled, 3 * kMiB);
  EXPECT_EQ(stats.frees, 1u);
  EXPECT_EQ(stats.peak_allocated, 1000 + 3 * kMiB - 5);

  allocator.empty_cache();
  EXPECT_EQ(allocator.stats().reserved, kSlab);
  EXPECT_EQ(allocator.stats().peak_reserved, kSlab + 3 * kMiB);
  allocator.reset_peaks();
  EXPECT_EQ(allocator.stats().peak_allocated, 1000u);
  EXPECT_EQ(allocator.stats().peak_reserved, kSlab);

  small.reset();
  EXPECT_EQ(allocator.stats().pooled, kSlab);
  allocator.empty_cache();
  EXPECT_EQ(allocator.stats().reserved, 0u);
  EXPECT_EQ(device.books->bytes, 0u);
}

TEST(Allocator, SmallLimitDecidesWhereABlockLives) {
  FakeDevice device;
  BufferRef small = device.allocator->allocate(kMiB);
  EXPECT_EQ(device.allocator->stats().reserved, kSlab);
  BufferRef large = device.allocator->allocate(kMiB + 1);
  EXPECT_EQ(device.allocator->stats().reserved, kSlab + kMiB + kMiB / 8);
}

TEST(Allocator, FillsASlabBeforeItTakesAnother) {
  FakeDevice device;
  std::vector<BufferRef> buffers;
  std::set<void*> addresses;
  for (size_t i = 0; i < 16; ++i) {
    buffers.push_back(device.allocator->allocate(kMiB));
    addresses.insert(buffers.back()->data());
    EXPECT_EQ(device.allocator->stats().raw_allocs, i / 8 + 1);
  }
  EXPECT_EQ(addresses.size(), 16u);
}

TEST(Allocator, ReusesTheLargeBlockThatWasFreedLast) {
  FakeDevice device;
  BufferRef first = device.allocator->allocate(2 * kMiB);
  BufferRef second = device.allocator->allocate(2 * kMiB);
  void* address = second->data();
  first.reset();
  second.reset();
  BufferRef again = device.allocator->allocate(2 * kMiB - 100);
  EXPECT_EQ(again->data(), address);
  EXPECT_EQ(device.allocator->stats().pool_hits, 1u);
  EXPECT_EQ(device.allocator->stats().raw_allocs, 2u);
}

TEST(Allocator, FreeSlabServesAsALargeBlockAndBack) {
  FakeDevice device;
  device.allocator->allocate(10);
  BufferRef large = device.allocator->allocate(kSlab);
  EXPECT_EQ(device.allocator->stats().raw_allocs, 1u);
  large.reset();
  BufferRef small = device.allocator->allocate(10);
  EXPECT_EQ(device.allocator->stats().raw_allocs, 1u);
  EXPECT_EQ(device.allocator->stats().pool_hits, 2u);
}

TEST(Allocator, ZeroBytesHaveAnAddressOfTheirOwn) {
  FakeDevice device;
  BufferRef first = device.allocator->allocate(0), second = device.allocator->allocate(0);
  EXPECT_NE(first->data(), nullptr);
  EXPECT_NE(first->data(), second->data());
  EXPECT_EQ(first->size(), 0u);
  EXPECT_EQ(device.allocator->stats().allocated, 0u);
  EXPECT_EQ(device.allocator->stats().allocs, 2u);
}

TEST(Allocator, PoolIsCappedAndTheOldestGoFirst) {
  FakeDevice device({.max_pool_bytes = 10 * kMiB});
  BufferRef a = device.allocator->allocate(4 * kMiB);
  BufferRef b = device.allocator->allocate(5 * kMiB);
  BufferRef c = device.allocator->allocate(3 * kMiB);
  void *address_b = b->data(), *address_c = c->data();
  a.reset();
  b.reset();
  EXPECT_EQ(device.allocator->stats().pooled, 9 * kMiB);
  c.reset();  // 12 MiB: a must go
  EXPECT_EQ(device.allocator->stats().pooled, 8 * kMiB);
  EXPECT_EQ(device.books->live.count(reinterpret_cast<uintptr_t>(address_b)), 1u);
  EXPECT_EQ(device.books->live.count(reinterpret_cast<uintptr_t>(address_c)), 1u);

  // What can never fit is released at once, and costs nobody else their place.
  device.allocator->allocate(11 * kMiB);
  EXPECT_EQ(device.allocator->stats().pooled, 8 * kMiB);
  EXPECT_EQ(device.allocator->stats().reserved, 8 * kMiB);
}

TEST(Allocator, OldBlocksAreReleasedInPassing) {
  FakeDevice device({.max_age = milliseconds(100)});
  BufferRef busy = device.allocator->allocate(10);
  BufferRef first = device.allocator->allocate(2 * kMiB),
            second = device.allocator->allocate(3 * kMiB);
  first.reset();
  device.sleep(milliseconds(60));
  second.reset();
  device.sleep(milliseconds(39));
  device.allocator->trim();
  EXPECT_EQ(device.allocator->stats().pooled, 5 * kMiB);
  device.sleep(milliseconds(1));
  BufferRef other = device.allocator->allocate(10);
  EXPECT_EQ(device.allocator->stats().pooled, 3 * kMiB);
  device.sleep(milliseconds(60));
  other.reset();
  EXPECT_EQ(device.allocator->stats().pooled, 0u);
  EXPECT_EQ(device.allocator->stats().reserved, kSlab);
}

TEST(Allocator, TrimReleasesAgedSlabs) {
  FakeDevice device({.max_age = milliseconds(100)});
  device.allocator->allocate(10);
  EXPECT_EQ(device.allocator->stats().reserved, kSlab);
  device.sleep(milliseconds(100));
  device.allocator->trim();
  EXPECT_EQ(device.allocator->stats().reserved, 0u);
}

TEST(Allocator, LimitBoundsWhatIsHeldAndNotWhatIsAskedFor) {
  FakeDevice device;
  Allocator& allocator = *device.allocator;
  allocator.set_limit(10 * kMiB);
  BufferRef small = allocator.allocate(100);  // takes a slab
  EXPECT_EQ(out_of_memory(allocator, 3 * kMiB),
            "[memory] cannot allocate 3145728 bytes: allocated 100, reserved 8388608, "
            "limit 10485760");
  BufferRef large = allocator.allocate(2 * kMiB);
  EXPECT_EQ(device.books->bytes, 10 * kMiB);
  EXPECT_NE(out_of_memory(allocator, kMiB + 1), "");
  EXPECT_EQ(out_of_memory(allocator, kMiB), "");  // the slab has room
  allocator.set_limit(0);
  EXPECT_EQ(out_of_memory(allocator, 100 * kMiB), "");
}

TEST(Allocator, SmallBlocksNeverTakeASlabBeyondTheLimit) {
  for (const size_t limit : {size_t{4096}, size_t{10'000}, kMiB, kSlab + 5000, 2 * kSlab - 1}) {
    FakeDevice device;
    device.allocator->set_limit(limit);
    std::vector<BufferRef> held;
    try {
      for (;;) held.push_back(device.allocator->allocate(200 << 10 >> (held.size() % 12)));
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::kOutOfMemory);
    }
    EXPECT_LE(device.books->bytes, limit);
    EXPECT_EQ(device.allocator->stats().reserved, device.books->bytes);
    held.clear();
    EXPECT_EQ(out_of_memory(*device.allocator, 4096), "") << limit;
    EXPECT_LE(device.allocator->stats().peak_reserved, limit);
    device.allocator->empty_cache();
    EXPECT_EQ(device.books->bytes, 0u);
  }
}

TEST(Allocator, PooledMemoryGoesBeforeTheLimitIsReached) {
  FakeDevice device;
  device.allocator->set_limit(10 * kMiB);
  device.allocator->allocate(2 * kMiB);
  device.allocator->allocate(6 * kMiB);
  EXPECT_EQ(device.allocator->stats().pooled, 8 * kMiB);
  BufferRef buffer = device.allocator->allocate(4 * kMiB);  // the oldest is enough
  EXPECT_EQ(device.allocator->stats().pooled, 6 * kMiB);
  buffer = device.allocator->allocate(5 * kMiB);
  EXPECT_LE(device.allocator->stats().peak_reserved, 10 * kMiB);
  EXPECT_EQ(device.allocator->stats().reserved, device.books->bytes);
}

TEST(Allocator, ALowerLimitTakesWhatIsFreeAndWhatBecomesFree) {
  FakeDevice device;
  BufferRef used = device.allocator->allocate(6 * kMiB);
  device.allocator->allocate(3 * kMiB);
  device.allocator->set_limit(7 * kMiB);
  EXPECT_EQ(device.books->bytes, 6 * kMiB);
  device.allocator->set_limit(kMiB);
  EXPECT_NE(out_of_memory(*device.allocator, 0), "");
  used.reset();
  EXPECT_EQ(device.books->bytes, 0u);
  EXPECT_EQ(device.allocator->stats().pooled, 0u);
}

TEST(Allocator, WhatTheMemoryCannotHaveIsNotAskedFor) {
  class Small final : public RawMemory {
   public:
    explicit Small(int& asked) : asked_(asked) {}
    void* allocate(size_t bytes) override { return ++asked_, ::operator new(bytes); }
    void release(void* data, size_t) noexcept override { ::operator delete(data); }
    size_t capacity() const override { return 5 * kMiB; }

   private:
    int& asked_;
  };
  int asked = 0;
  auto allocator = Allocator::create(std::make_unique<Small>(asked), AllocatorOptions());
  EXPECT_EQ(allocator->limit(), 5 * kMiB);
  allocator->set_limit(100 * kMiB);
  EXPECT_EQ(allocator->limit(), 5 * kMiB);
  EXPECT_NE(out_of_memory(*allocator, 6 * kMiB), "");
  EXPECT_EQ(asked, 0);
  EXPECT_EQ(out_of_memory(*allocator, 4 * kMiB), "");
  EXPECT_EQ(asked, 1);
}

TEST(Allocator, EmptiesTheCacheBeforeItGivesUp) {
  FakeDevice device;
  device.books->capacity = 10 * kMiB;
  device.allocator->allocate(6 * kMiB);
  EXPECT_EQ(device.allocator->stats().pooled, 6 * kMiB);
  BufferRef buffer = device.allocator->allocate(9 * kMiB);
  EXPECT_EQ(device.allocator->stats().reserved, 9 * kMiB);
  EXPECT_EQ(out_of_memory(*device.allocator, 2 * kMiB),
            "[memory] cannot allocate 2097152 bytes: allocated 9437184, reserved 9437184, "
            "no limit set");
  EXPECT_EQ(out_of_memory(*device.allocator, 1), "");  // no room for a slab, but for a page
  EXPECT_EQ(device.allocator->stats().reserved, 9 * kMiB + 4096);
  buffer.reset();
  EXPECT_EQ(out_of_memory(*device.allocator, 1), "");
}

TEST(Allocator, WaitsForFencesBeforeItGivesUp) {
  FakeDevice device;
  device.books->capacity = 10 * kMiB;
  auto fence = std::make_shared<FakeFence>();
  device.allocator->free_after(device.allocator->allocate_block(6 * kMiB), {fence});
  EXPECT_EQ(device.allocator->stats().allocated, 6 * kMiB);
  BufferRef buffer = device.allocator->allocate(9 * kMiB);
  EXPECT_EQ(fence->waits, 1);
  EXPECT_EQ(device.allocator->stats().allocated, 9 * kMiB);
}

TEST(Allocator, HugeSizesDoNotOverflow) {
  constexpr size_t kMax = std::numeric_limits<size_t>::max();
  for (size_t bytes : {kMax, kMax - 1, kMax - 4095, kMax / 2 + 1, kMax / 2}) {
    FakeDevice device;
    BufferRef some = device.allocator->allocate(100);
    EXPECT_NE(out_of_memory(*device.allocator, bytes), "") << bytes;
    device.allocator->set_limit(kMax);
    EXPECT_NE(out_of_memory(*device.allocator, bytes), "") << bytes;
    EXPECT_EQ(device.allocator->stats().allocated, 100u);
  }
  auto host = Allocator::create(std::make_unique<HostMemory>());
  EXPECT_NE(out_of_memory(*host, kMax / 2), "");
}

TEST(Allocator, PendingBlockIsNotReusedBeforeItsFence) {
  FakeDevice device;
  auto fence = std::make_shared<FakeFence>();
  Block block = device.allocator->allocate_block(2 * kMiB);
  device.allocator->free_after(block, {fence});
  BufferRef other = device.allocator->allocate(2 * kMiB);
  EXPECT_NE(other->data(), block.data);
  EXPECT_EQ(device.allocator->stats().frees, 0u);
  fence->open();
  BufferRef same = device.allocator->allocate(2 * kMiB);
  EXPECT_EQ(same->data(), block.data);
  EXPECT_EQ(device.allocator->stats().frees, 1u);
  EXPECT_EQ(fence->waits, 0);
}

TEST(Allocator, ASlowStreamDoesNotHoldUpTheOthers) {
  FakeDevice device;
  auto slow = std::make_shared<FakeFence>(), quick = std::make_shared<FakeFence>();
  device.allocator->free_after(device.allocator->allocate_block(100), {slow});
  device.allocator->free_after(device.allocator->allocate_block(10), {quick});
  quick->open();
  BufferRef buffer = device.allocator->allocate(1);
  EXPECT_EQ(device.allocator->stats().allocated, 101u);
}

TEST(Allocator, EmptyCacheWaitsForWhatIsPending) {
  FakeDevice device;
  std::vector<std::shared_ptr<FakeFence>> fences;
  for (int i = 0; i < 20; ++i) {
    fences.push_back(std::make_shared<FakeFence>());
    device.allocator->free_after(device.allocator->allocate_block(2 * kMiB), {fences.back()});
  }
  device.allocator->empty_cache();
  EXPECT_EQ(device.books->bytes, 0u);
  EXPECT_EQ(device.allocator->stats().allocated, 0u);
}

TEST(Allocator, ItsEndWaitsForFencesAndReleasesAll) {
  FakeDevice device;
  auto fence = std::make_shared<FakeFence>();
  device.allocator->free_after(device.allocator->allocate_block(100), {fence});
  device.allocator->allocate_block(100);
  device.allocator->allocate_block(2 * kMiB);
  device.allocator.reset();
  EXPECT_EQ(fence->waits, 1);
  EXPECT_EQ(device.books->bytes, 0u);
  EXPECT_EQ(device.books->wrong_releases, 0);
}

TEST(Allocator, FreeOfNothingIsNothing) {
  FakeDevice device;
  device.allocator->free({});
  EXPECT_EQ(device.allocator->stats().frees, 0u);
}

TEST(AllocatorOptions, ComeFromTheEnvironment) {
  setenv("MPS_MAX_POOL_SIZE", "3M", 1);
  setenv("MPS_MAX_BUFFER_AGE", "250", 1);
  AllocatorOptions options = AllocatorOptions::from_env();
  EXPECT_EQ(options.max_pool_bytes, 3 * kMiB);
  EXPECT_EQ(options.max_age, milliseconds(250));
  setenv("MPS_MAX_BUFFER_AGE", "-1", 1);
  EXPECT_THROW(AllocatorOptions::from_env(), Error);
  setenv("MPS_MAX_BUFFER_AGE", "9223372036854775807", 1);
  FakeDevice patient(AllocatorOptions::from_env());
  patient.allocator->allocate(2 * kMiB);
  patient.sleep(milliseconds(1'000'000'000));
  patient.allocator->trim();
  EXPECT_EQ(patient.allocator->stats().pooled, 2 * kMiB);
  unsetenv("MPS_MAX_POOL_SIZE");
  unsetenv("MPS_MAX_BUFFER_AGE");
  options = AllocatorOptions::from_env();
  EXPECT_EQ(options.max_pool_bytes, size_t{1} << 30);
  EXPECT_EQ(options.max_age, milliseconds(60000));
  EXPECT_EQ(options.limit, 0u);
  setenv("MPS_MEMORY_LIMIT", "6M", 1);
  FakeDevice bounded(AllocatorOptions::from_env());
  unsetenv("MPS_MEMORY_LIMIT");
  EXPECT_NE(out_of_memory(*bounded.allocator, 7 * kMiB), "");
  bounded.allocator->set_limit(8 * kMiB);
  EXPECT_EQ(out_of_memory(*bounded.allocator, 7 * kMiB), "");
  bounded.allocator->set_limit(0);
  EXPECT_EQ(bounded.allocator->limit(), 6 * kMiB);
}

TEST(AllocatorOptions, AreChecked) {
  EXPECT_THROW(FakeDevice({.slab_bytes = 3 * kMiB}), Error);
  EXPECT_THROW(FakeDevice({.slab_bytes = 256}), Error);
  EXPECT_THROW(FakeDevice({.small_limit = 2 * kMiB, .slab_bytes = kMiB}), Error);
  EXPECT_THROW(Allocator::create(nullptr), Error);
}

}  // namespace
}  // namespace anymps
