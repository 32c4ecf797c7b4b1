// SPDX-License-Identifier: Apache-2.0
#include "server/memory/buffer_pool.h"

#include <malloc.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <mutex>
#include <new>
#include <vector>

#include "server/core/clock.h"

namespace anymps::server {
namespace {

constexpr size_t kAlignment = 64;
constexpr size_t kSmall = size_t{16} << 10;   // below: the allocator is fast enough
constexpr size_t kLarge = size_t{256} << 20;  // above: not kept
constexpr size_t kKept = size_t{256} << 20;   // bytes that may lie idle

constexpr size_t kFirst = std::bit_width(kSmall) - 1, kLast = std::bit_width(kLarge) - 1;

class Pool {
 public:
  static Pool& get() {
    static Pool* pool = new Pool;  // never destroyed: buffers may outlive everything else
    return *pool;
  }
  void* take(size_t size_class) {
    {
      std::lock_guard lock(mutex_);
      std::vector<Free>& free = free_[size_class - kFirst];
      if (!free.empty()) {
        void* block = free.back().block;
        free.pop_back();
        kept_ -= size_t{1} << size_class;
        return block;
      }
    }
    return std::aligned_alloc(kAlignment, size_t{1} << size_class);
  }
  void give(void* block, size_t size_class) noexcept {
    const size_t bytes = size_t{1} << size_class;
    {
      std::lock_guard lock(mutex_);
      if (kept_ + bytes <= kKept) {
        try {
          free_[size_class - kFirst].push_back({block, now_ns()});
          kept_ += bytes;
          return;
        } catch (const std::bad_alloc&) {
        }
      }
    }
    std::free(block);
  }

  void trim(uint64_t before_ns) {
    std::vector<Free> old;
    {
      std::lock_guard lock(mutex_);
      for (size_t i = 0; i < free_.size(); ++i) {
        // The last that came is the first to go: the oldest are in front.
        std::vector<Free>& free = free_[i];
        const auto young = std::find_if(free.begin(), free.end(),
                                        [&](const Free& one) { return one.since_ns > before_ns; });
        kept_ -= (young - free.begin()) << (i + kFirst);
        old.insert(old.end(), free.begin(), young);
        free.erase(free.begin(), young);
      }
    }
    for (const Free& each : old) std::free(each.block);
    if (!old.empty()) malloc_trim(0);  // blocks of some sizes lie in the allocator's own heap
  }
  size_t kept() {
    std::lock_guard lock(mutex_);
    return kept_;
  }

 private:
  struct Free {
    void* block;
    uint64_t since_ns;
  };
  std::mutex mutex_;
  std::array<std::vector<Free>, kLast - kFirst + 1> free_;
  size_t kept_ = 0;
};

[[noreturn]] void no_memory(size_t bytes) {
  throw Error(Code::kUnavailable, "no memory for an output of " + std::to_string(bytes) + " bytes");
}

}  // namespace

void trim_buffers(std::chrono::nanoseconds age) {
  const uint64_t now = now_ns(), most = static_cast<uint64_t>(age.count());
  if (now >= most) Pool::get().trim(now - most);
}

size_t unused_buffer_bytes() { return Pool::get().kept(); }

Buffer allocate_buffer(size_t bytes) {
  try {
    if (bytes < kSmall) {
      auto owner = std::make_shared_for_overwrite<std::byte[]>(bytes + kAlignment);
      const auto address = reinterpret_cast<uintptr_t>(owner.get());
      std::byte* data = owner.get() + (kAlignment - address % kAlignment) % kAlignment;
      return {std::shared_ptr<void>(std::move(owner), data), data, bytes};
    }
    void* block = nullptr;
    std::shared_ptr<void> owner;
    if (bytes <= kLarge) {
      const size_t size_class = std::bit_width(bytes - 1);
      block = Pool::get().take(size_class);
      if (!block) no_memory(bytes);
      owner = {block, [size_class](void* p) { Pool::get().give(p, size_class); }};
    } else {
      if (bytes > SIZE_MAX - kAlignment) no_memory(bytes);
      block = std::aligned_alloc(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment);
      if (!block) no_memory(bytes);
      owner = {block, [](void* p) { std::free(p); }};
    }
    return {std::move(owner), static_cast<std::byte*>(block), bytes};
  } catch (const std::bad_alloc&) {
    no_memory(bytes);
  }
}

}  // namespace anymps::server
