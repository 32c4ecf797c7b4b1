// SPDX-License-Identifier: Apache-2.0
// The allocator of every driver, over the driver's raw memory. Small blocks are cut from slabs by a
// buddy allocator, larger ones are separate regions; regions that become free, slabs among them,
// wait in a pool for re-use until they are too many or too old.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <vector>

#include "base/fork.h"
#include "memory/bucket_pool.h"
#include "memory/buffer.h"
#include "memory/fence.h"
#include "memory/raw_memory.h"
#include "memory/region.h"

namespace anymps {

struct AllocatorOptions {
  size_t max_pool_bytes = size_t{1} << 30;
  std::chrono::milliseconds max_age{60000};
  size_t small_limit = size_t{1} << 20;  // larger blocks are not cut from slabs
  size_t slab_bytes = size_t{8} << 20;   // a power of two
  size_t limit = 0;                      // of set_limit at the start, and what 0 goes back to
  std::function<std::chrono::steady_clock::time_point()> clock = std::chrono::steady_clock::now;

  // The defaults, with MPS_MAX_POOL_SIZE, MPS_MAX_BUFFER_AGE and MPS_MEMORY_LIMIT.
  static AllocatorOptions from_env();
};

struct MemoryStats {
  size_t allocated = 0;  // bytes asked for and not yet free, those that wait for a fence included
  size_t reserved = 0;   // bytes of raw memory held
  size_t pooled = 0;     // bytes of `reserved` that are free and wait for re-use
  size_t peak_allocated = 0;
  size_t peak_reserved = 0;
  uint64_t allocs = 0;
  uint64_t frees = 0;
  uint64_t raw_allocs = 0;
  uint64_t pool_hits = 0;  // regions that came from the pool instead of raw memory
};

// Safe to use from several threads.
class Allocator : public std::enable_shared_from_this<Allocator> {
  struct Private {};

 public:
  static std::shared_ptr<Allocator> create(std::unique_ptr<RawMemory> raw,
                                           AllocatorOptions options = AllocatorOptions::from_env());

  Allocator(Private, std::unique_ptr<RawMemory> raw, AllocatorOptions options);
  ~Allocator();
  Allocator(const Allocator&) = delete;
  Allocator& operator=(const Allocator&) = delete;

  // Zero bytes get a unique address too. When memory is short, waits for the pending fences and
  // empties the cache before it gives up with Code::kOutOfMemory.
  BufferRef allocate(size_t bytes);

  // The same without an owner, for those who must keep their own books.
  Block allocate_block(size_t bytes);
  void free(const Block& block) noexcept;
  // The block is free once all fences are done; until then it counts as allocated.
  void free_after(const Block& block, const Fences& fences) noexcept;

  // Waits for the pending fences, then releases all that is free.
  void empty_cache();
  // Releases what is too old; allocate and free do that in passing.
  void trim();

  // The most raw memory that may be held at a time, what waits in the pool and what is free in
  // slabs included; 0: the options' limit, or else as much as there is. What is held beyond a lower
  // limit goes back when it is free.
  void set_limit(size_t bytes);
  // That number, never more than the raw memory's capacity.
  size_t limit() const { return limit_.load(std::memory_order_relaxed); }

  // Takes no lock: each number is exact, but others may change between two of them.
  MemoryStats stats() const;
  void reset_peaks();

 private:
  struct Pending {
    Block block;
    Fences fences;
  };
  using PendingList = std::list<Pending>;

  struct Counters {
    std::atomic<size_t> allocated{0}, reserved{0}, pooled{0}, peak_allocated{0}, peak_reserved{0};
    std::atomic<uint64_t> allocs{0}, frees{0}, raw_allocs{0}, pool_hits{0};
  };

  const std::unique_ptr<RawMemory> raw_;
  const AllocatorOptions options_;
  std::atomic<size_t> limit_;
  Counters counters_;  // written with the lock held only

  ForkMutex mutex_;  // guards what follows
  BucketPool pool_;
  GroupList large_;               // regions handed out whole
  std::vector<GroupList> slabs_;  // slabs in use; at [k] the largest free block is of order k - 1
  PendingList pending_;

  // These want the lock held.
  Block try_allocate(size_t bytes);
  Block allocate_small(size_t bytes);
  Block allocate_large(size_t bytes);
  Region* new_slab();
  Region* acquire(size_t bytes);
  bool make_room(size_t bytes);
  void give_back(const Block& block);
  void retire(Region* region);
  void destroy(Region* region);
  void release_pool();
  void release_aged();
  PendingList collect_done(size_t patience);

  void wait_for_pending();
};

}  // namespace anymps
