// SPDX-License-Identifier: Apache-2.0
#include "server/core/buffer_pool.h"

#include <array>
#include <bit>
#include <cstdlib>
#include <mutex>
#include <new>
#include <vector>

namespace server {
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
      std::vector<void*>& free = free_[size_class - kFirst];
      if (!free.empty()) {
        void* block = free.back();
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
          free_[size_class - kFirst].push_back(block);
          kept_ += bytes;
          return;
        } catch (const std::bad_alloc&) {
        }
      }
    }
    std::free(block);
  }

 private:
  std::mutex mutex_;
  std::array<std::vector<void*>, kLast - kFirst + 1> free_;
  size_t kept_ = 0;
};

[[noreturn]] void no_memory(size_t bytes) {
  throw Error(Code::kUnavailable, "no memory for an output of " + std::to_string(bytes) + " bytes");
}

}  // namespace

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

}  // namespace server
