// SPDX-License-Identifier: Apache-2.0
// Random use of the allocator, against a shadow model on one thread and for the sanitizers on many.
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <ostream>
#include <random>
#include <thread>

#include "base/error.h"
#include "fakes.h"

namespace anymps {
namespace {

size_t random_size(std::mt19937& random) {
  size_t most = size_t{1} << (random() % 23);
  return random() % (most + 1);
}

struct Setup {
  const char* name;
  AllocatorOptions options;
};

void PrintTo(const Setup& setup, std::ostream* out) { *out << setup.name; }

class AllocatorStress : public testing::TestWithParam<Setup> {};

TEST_P(AllocatorStress, AgreesWithAShadowModel) {
  FakeDevice device(GetParam().options);
  Allocator& allocator = *device.allocator;
  std::mt19937 random(3);
  struct Live {
    size_t size;
    Block block;
    std::shared_ptr<FakeFence> fence;  // set: already given to free_after
  };
  std::map<uintptr_t, Live> live;
  size_t allocated = 0, peak = 0;
  uint64_t allocs = 0, frees = 0;
  auto forget_done = [&] {
    std::erase_if(live, [&](auto& entry) {
      if (!entry.second.fence || !entry.second.fence->done()) return false;
      allocated -= entry.second.size;
      return ++frees > 0;
    });
  };

  for (int step = 0; step < 20000; ++step) {
    device.sleep(std::chrono::milliseconds(random() % 3));
    unsigned action = random() % 100;
    auto victim =
        live.empty() ? live.end()
                     : std::next(live.begin(), static_cast<std::ptrdiff_t>(random() % live.size()));
    if (action < 50 && live.size() < 200) {
      size_t size = random_size(random);
      Block block = allocator.allocate_block(size);
      auto address = reinterpret_cast<uintptr_t>(block.data);
      ASSERT_EQ(address % RawMemory::kAlignment, 0u);
      // Inside one raw block...
      auto raw = device.books->live.upper_bound(address);
      ASSERT_NE(raw, device.books->live.begin());
      --raw;
      ASSERT_LE(address + size, raw->first + raw->second);
      // ...and clear of all others; an empty one takes a byte so that it is unique.
      auto next = live.lower_bound(address);
      if (next != live.end()) {
        ASSERT_LE(address + std::max<size_t>(size, 1), next->first);
      }
      if (next != live.begin()) {
        auto previous = std::prev(next);
        ASSERT_LE(previous->first + std::max<size_t>(previous->second.size, 1), address);
      }
      live[address] = {size, block, nullptr};
      ++allocs;
      allocated += size;
      peak = std::max(peak, allocated);
    } else if (action < 85 && victim != live.end() && !victim->second.fence) {
      allocator.free(victim->second.block);
      allocated -= victim->second.size;
      ++frees;
      live.erase(victim);
    } else if (action < 95 && victim != live.end()) {
      if (!victim->second.fence) {
        victim->second.fence = std::make_shared<FakeFence>();
        allocator.free_after(victim->second.block, {victim->second.fence});
      } else {
        victim->second.fence->open();
        allocator.trim();
        forget_done();
      }
    } else if (action == 99) {
      allocator.empty_cache();
      forget_done();
      ASSERT_EQ(allocator.stats().pooled, 0u);
    }
    MemoryStats stats = allocator.stats();
    ASSERT_EQ(stats.allocated, allocated);
    ASSERT_EQ(stats.peak_allocated, peak);
    ASSERT_EQ(stats.allocs, allocs);
    ASSERT_EQ(stats.frees, frees);
    ASSERT_EQ(stats.reserved, device.books->bytes);
    ASSERT_GE(stats.reserved, stats.allocated + stats.pooled);
    ASSERT_LE(stats.pooled, GetParam().options.max_pool_bytes);
  }
  for (auto& [address, entry] : live)
    if (!entry.fence) allocator.free(entry.block);
  allocator.empty_cache();
  EXPECT_EQ(device.books->bytes, 0u);
  EXPECT_EQ(allocator.stats().allocated, 0u);
  EXPECT_EQ(device.books->wrong_releases, 0);
}

INSTANTIATE_TEST_SUITE_P(
    Options, AllocatorStress,
    testing::Values(Setup{"defaults", {}}, Setup{"keeps_nothing", {.max_pool_bytes = 0}},
                    Setup{"all_limits_bite",
                          {.max_pool_bytes = size_t{6} << 20,
                           .max_age = std::chrono::milliseconds(20)}},
                    Setup{"many_slabs", {.small_limit = 1 << 16, .slab_bytes = 1 << 16}},
                    Setup{"no_slabs", {.small_limit = 0}}),
    [](const auto& test) { return std::string(test.param.name); });

TEST(AllocatorThreads, MemoryIsNeverShared) {
  auto allocator = Allocator::create(
      std::make_unique<HostMemory>(),
      {.max_pool_bytes = size_t{16} << 20, .max_age = std::chrono::milliseconds(1)});
  std::atomic<int> corrupted{0};
  auto work = [&](unsigned seed) {
    std::mt19937 random(seed);
    std::vector<BufferRef> mine;
    for (int step = 0; step < 1500; ++step) {
      if (mine.size() < 16 && random() % 2) {
        mine.push_back(allocator->allocate(random_size(random) / 4));
        BufferRef& buffer = mine.back();
        if (random() % 4 == 0) buffer->keep_until(std::make_shared<FakeFence>());
        std::memset(buffer->data(), static_cast<int>(seed), std::min<size_t>(buffer->size(), 512));
      } else if (!mine.empty()) {
        size_t index = random() % mine.size();
        auto* bytes = static_cast<unsigned char*>(mine[index]->data());
        for (size_t i = 0; i < std::min<size_t>(mine[index]->size(), 512); ++i)
          if (bytes[i] != seed) ++corrupted;
        mine[index] = std::move(mine.back());
        mine.pop_back();
      }
      if (step % 300 == 0) allocator->empty_cache();
      if (step % 100 == 0) allocator->trim();
    }
  };
  std::atomic<bool> stop{false};
  std::atomic<int> impossible{0};
  std::thread reader([&] {
    while (!stop) {
      MemoryStats stats = allocator->stats();
      if (stats.peak_allocated < stats.allocated || stats.peak_reserved < stats.reserved)
        ++impossible;
      std::this_thread::yield();
    }
  });
  std::vector<std::thread> threads;
  for (unsigned seed = 1; seed <= 4; ++seed) threads.emplace_back(work, seed);
  for (std::thread& thread : threads) thread.join();
  stop = true;
  reader.join();
  EXPECT_EQ(corrupted, 0);
  EXPECT_EQ(impossible, 0);
  allocator->empty_cache();
  MemoryStats stats = allocator->stats();
  EXPECT_EQ(stats.allocated, 0u);
  EXPECT_EQ(stats.reserved, 0u);
  EXPECT_EQ(stats.allocs, stats.frees);
}

TEST(AllocatorThreads, LimitHoldsUnderContention) {
  auto allocator = Allocator::create(std::make_unique<HostMemory>());
  allocator->set_limit(100'000);
  std::atomic<int> refused{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      std::vector<BufferRef> mine;
      for (int step = 0; step < 200; ++step) {
        try {
          mine.push_back(allocator->allocate(1000));
        } catch (const Error& error) {
          if (error.code() == Code::kOutOfMemory) ++refused;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GE(refused, 100);  // one thread alone wants twice the limit
  EXPECT_LE(allocator->stats().peak_reserved, 100'000u);
  EXPECT_EQ(allocator->stats().allocated, 0u);
}

}  // namespace
}  // namespace anymps
