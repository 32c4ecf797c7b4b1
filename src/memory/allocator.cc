// SPDX-License-Identifier: Apache-2.0
#include "memory/allocator.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <mutex>
#include <new>
#include <utility>

#include "base/env.h"
#include "base/error.h"

namespace anymps {

namespace {

constexpr size_t kMinBlock = RawMemory::kAlignment;

// A year: long enough, and no overflow when it is compared with the clock's nanoseconds.
constexpr std::chrono::milliseconds kForEver = std::chrono::hours(365 * 24);

// Asking a fence may cost a call into a device's driver, so only a few are asked in passing.
constexpr size_t kPatience = 8;
constexpr size_t kAskAll = std::numeric_limits<size_t>::max();
constexpr size_t kNoLimit = std::numeric_limits<size_t>::max();

// The lock makes this thread the only writer; readers need only see whole values.
template <typename T>
void add(std::atomic<T>& counter, T amount) {
  counter.store(counter.load(std::memory_order_relaxed) + amount, std::memory_order_release);
}

template <typename T>
void subtract(std::atomic<T>& counter, T amount) {
  counter.store(counter.load(std::memory_order_relaxed) - amount, std::memory_order_release);
}

void add_with_peak(std::atomic<size_t>& counter, std::atomic<size_t>& peak, size_t amount) {
  // The peak first, so that no reader ever sees a peak below the counter.
  size_t value = counter.load(std::memory_order_relaxed) + amount;
  if (value > peak.load(std::memory_order_relaxed)) peak.store(value, std::memory_order_relaxed);
  counter.store(value, std::memory_order_release);
}

size_t slab_list(const Region* slab) {
  int index = slab->buddy->largest_order() + 1;
  return index;
}

}  // namespace

AllocatorOptions AllocatorOptions::from_env() {
  AllocatorOptions options;
  options.max_pool_bytes = env_bytes("MPS_MAX_POOL_SIZE");
  int64_t age = env_int("MPS_MAX_BUFFER_AGE");
  require(age >= 0, "[memory] MPS_MAX_BUFFER_AGE={} is negative", age);
  options.max_age = std::chrono::milliseconds(age);
  options.limit = env_bytes("MPS_MEMORY_LIMIT");
  return options;
}

std::shared_ptr<Allocator> Allocator::create(std::unique_ptr<RawMemory> raw,
                                             AllocatorOptions options) {
  require(raw != nullptr, "[memory] an allocator needs raw memory");
  require(std::has_single_bit(options.slab_bytes) && options.slab_bytes >= kSmallestBucket &&
              options.small_limit <= options.slab_bytes,
          "[memory] slab of {} bytes: expected a power of two, at least {} and the small limit {}",
          options.slab_bytes, kSmallestBucket, options.small_limit);
  options.max_age = std::min(options.max_age, kForEver);
  return std::make_shared<Allocator>(Private(), std::move(raw), std::move(options));
}

Allocator::Allocator(Private, std::unique_ptr<RawMemory> raw, AllocatorOptions options)
    : raw_(std::move(raw)), options_(std::move(options)) {
  slabs_.resize(static_cast<size_t>(Buddy::order_of(options_.slab_bytes, kMinBlock)) + 2);
  set_limit(0);
}

Allocator::~Allocator() {
  for (const Pending& pending : pending_)
    for (const FenceRef& fence : pending.fences) fence->wait();
  release_pool();
  auto destroy_all = [this](GroupList& list) {
    while (Region* region = list.front()) {
      list.remove(region);
      destroy(region);
    }
  };
  destroy_all(large_);
  for (GroupList& list : slabs_) destroy_all(list);
}

BufferRef Allocator::allocate(size_t bytes) {
  // The buffer first: once there is a block, nothing may throw.
  auto buffer = std::make_shared<Buffer>(Buffer::Private());
  buffer->block_ = allocate_block(bytes);
  buffer->allocator_ = shared_from_this();
  return buffer;
}

Block Allocator::allocate_block(size_t bytes) {
  try {
    PendingList done;  // outlives the lock: what its fences own may come back here
    {
      std::lock_guard lock(mutex_);
      done = collect_done(kPatience);
      release_aged();
      if (Block block = try_allocate(bytes); block.region) return block;
    }
    empty_cache();
    std::lock_guard lock(mutex_);
    if (Block block = try_allocate(bytes); block.region) return block;
  } catch (const std::bad_alloc&) {
    // No memory for the books is no memory.
  }
  MemoryStats now = stats();
  const size_t most = limit();
  fail(Code::kOutOfMemory, "[memory] cannot allocate {} bytes: allocated {}, reserved {}, {}",
       bytes, now.allocated, now.reserved,
       most < kNoLimit ? fmt::format("limit {}", most) : "no limit set");
}

Block Allocator::try_allocate(size_t bytes) {
  Block block = bytes <= options_.small_limit ? allocate_small(bytes) : allocate_large(bytes);
  if (!block.region) return {};
  add_with_peak(counters_.allocated, counters_.peak_allocated, bytes);
  add(counters_.allocs, uint64_t{1});
  return block;
}

Block Allocator::allocate_small(size_t bytes) {
  int order = Buddy::order_of(bytes, kMinBlock);
  // The slab whose largest free block fits most tightly.
  auto list = std::find_if(slabs_.begin() + order + 1, slabs_.end(),
                           [](const GroupList& slabs) { return !slabs.empty(); });
  Region* slab = list != slabs_.end() ? list->front() : new_slab();
  if (!slab) return allocate_large(bytes);  // short of memory: a few pages may still be there
  size_t before = slab_list(slab);
  size_t offset = *slab->buddy->allocate(order);
  if (size_t after = slab_list(slab); after != before) {
    slabs_[before].remove(slab);
    slabs_[after].push_back(slab);
  }
  return {static_cast<char*>(slab->base) + offset, bytes, slab};
}

Region* Allocator::new_slab() {
  Region* slab = acquire(options_.slab_bytes);
  if (!slab) return nullptr;
  try {
    if (!slab->buddy) slab->buddy = std::make_unique<Buddy>(options_.slab_bytes, kMinBlock);
  } catch (const std::bad_alloc&) {
    retire(slab);
    throw;
  }
  slab->is_slab = true;
  slabs_.back().push_back(slab);
  return slab;
}

Block Allocator::allocate_large(size_t bytes) {
  size_t bucket = bucket_bytes(bytes);
  Region* region = bucket ? acquire(bucket) : nullptr;
  if (!region) return {};
  large_.push_back(region);
  return {region->base, bytes, region};
}

// A region that is in no list yet, from the pool or from raw memory; nullptr when there is none.
Region* Allocator::acquire(size_t bytes) {
  if (Region* region = pool_.take(bytes)) {
    counters_.pooled.store(pool_.bytes(), std::memory_order_relaxed);
    add(counters_.pool_hits, uint64_t{1});
    return region;
  }
  if (!make_room(bytes)) return nullptr;
  auto region = std::make_unique<Region>();
  region->base = raw_->allocate(bytes);
  if (!region->base) return nullptr;
  region->bytes = bytes;
  add_with_peak(counters_.reserved, counters_.peak_reserved, bytes);
  add(counters_.raw_allocs, uint64_t{1});
  return region.release();
}

// Whether this many more bytes may be held, once pooled regions have gone for them. With none: gets
// down to the limit as far as the pool allows.
bool Allocator::make_room(size_t bytes) {
  const size_t most = limit();
  const auto held = [this] { return counters_.reserved.load(std::memory_order_relaxed); };
  if (bytes > most || (bytes && held() - pool_.bytes() > most - bytes)) return false;
  while (held() > most - bytes && pool_.oldest()) destroy(pool_.take_oldest());
  counters_.pooled.store(pool_.bytes(), std::memory_order_relaxed);
  return true;
}

void Allocator::set_limit(size_t bytes) {
  if (bytes == 0) bytes = options_.limit ? options_.limit : kNoLimit;
  std::lock_guard lock(mutex_);
  limit_.store(std::min(bytes, raw_->capacity()), std::memory_order_relaxed);
  make_room(0);
}

void Allocator::free(const Block& block) noexcept { free_after(block, {}); }

void Allocator::free_after(const Block& block, const Fences& fences) noexcept {
  if (!block.region) return;
  PendingList entry;
  try {
    if (!fences.empty()) entry.push_back({block, fences});
  } catch (const std::bad_alloc&) {
    for (const FenceRef& fence : fences) fence->wait();
  }
  PendingList done;  // outlives the lock: what its fences own may come back here
  std::lock_guard lock(mutex_);
  if (entry.empty())
    give_back(block);
  else
    pending_.splice(pending_.end(), entry);
  done = collect_done(kPatience);
  release_aged();
}

void Allocator::give_back(const Block& block) {
  subtract(counters_.allocated, block.size);
  add(counters_.frees, uint64_t{1});
  Region* region = block.region;
  if (!region->is_slab) {
    large_.remove(region);
    retire(region);
    return;
  }
  size_t before = slab_list(region);
  size_t offset = static_cast<char*>(block.data) - static_cast<char*>(region->base);
  region->buddy->free(offset, Buddy::order_of(block.size, kMinBlock));
  size_t after = slab_list(region);
  if (after == before) return;
  slabs_[before].remove(region);
  if (region->buddy->is_free())
    retire(region);
  else
    slabs_[after].push_back(region);
}

void Allocator::retire(Region* region) {
  region->is_slab = false;
  if (region->bytes > options_.max_pool_bytes) {
    destroy(region);
    return;
  }
  pool_.put(region, options_.clock());
  while (pool_.bytes() > options_.max_pool_bytes) destroy(pool_.take_oldest());
  make_room(0);  // the limit may have been lowered
}

void Allocator::destroy(Region* region) {
  raw_->release(region->base, region->bytes);
  subtract(counters_.reserved, region->bytes);
  delete region;
}

void Allocator::release_pool() {
  while (Region* region = pool_.take_oldest()) destroy(region);
  counters_.pooled.store(0, std::memory_order_relaxed);
}

void Allocator::release_aged() {
  if (!pool_.oldest()) return;
  auto now = options_.clock();
  while (pool_.oldest() && now - pool_.oldest()->freed_at >= options_.max_age)
    destroy(pool_.take_oldest());
  counters_.pooled.store(pool_.bytes(), std::memory_order_relaxed);
}

// Gives back the blocks whose fences are done, until `patience` of them were not. The caller drops
// the result without the lock.
Allocator::PendingList Allocator::collect_done(size_t patience) {
  PendingList done;
  for (auto it = pending_.begin(); it != pending_.end() && patience > 0;) {
    auto entry = it++;
    if (!std::all_of(entry->fences.begin(), entry->fences.end(),
                     [](const FenceRef& fence) { return fence->done(); })) {
      --patience;
      continue;
    }
    give_back(entry->block);
    done.splice(done.end(), pending_, entry);
  }
  return done;
}

void Allocator::wait_for_pending() {
  Fences fences;
  {
    std::lock_guard lock(mutex_);
    for (const Pending& pending : pending_)
      fences.insert(fences.end(), pending.fences.begin(), pending.fences.end());
  }
  for (const FenceRef& fence : fences) fence->wait();
}

void Allocator::empty_cache() {
  wait_for_pending();
  PendingList done;
  std::lock_guard lock(mutex_);
  done = collect_done(kAskAll);
  release_pool();
}

void Allocator::trim() {
  PendingList done;
  std::lock_guard lock(mutex_);
  done = collect_done(kAskAll);
  release_aged();
}

MemoryStats Allocator::stats() const {
  auto read = [](const auto& counter) { return counter.load(std::memory_order_acquire); };
  const Counters& c = counters_;
  MemoryStats stats;
  stats.allocated = read(c.allocated);
  stats.reserved = read(c.reserved);
  stats.pooled = read(c.pooled);
  stats.peak_allocated = read(c.peak_allocated);
  stats.peak_reserved = read(c.peak_reserved);
  stats.allocs = read(c.allocs);
  stats.frees = read(c.frees);
  stats.raw_allocs = read(c.raw_allocs);
  stats.pool_hits = read(c.pool_hits);
  return stats;
}

void Allocator::reset_peaks() {
  std::lock_guard lock(mutex_);
  counters_.peak_allocated.store(counters_.allocated.load(std::memory_order_relaxed));
  counters_.peak_reserved.store(counters_.reserved.load(std::memory_order_relaxed));
}

}  // namespace anymps
