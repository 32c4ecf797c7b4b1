// SPDX-License-Identifier: Apache-2.0
#include "device/pinned.h"

#include <pthread.h>

#include <cstdint>
#include <cstring>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>

#include <c10/core/CPUAllocator.h>

namespace anymps::aten {

namespace {

class Blocks;
Blocks& blocks();

// Where blocks begin, and their sizes.
class Blocks {
 public:
  // A forked child finds the mutex free.
  Blocks() {
    pthread_atfork([] { blocks().mutex_.lock(); }, [] { blocks().mutex_.unlock(); },
                   [] { blocks().mutex_.unlock(); });
  }
  void add(const void* data, size_t bytes) {
    const std::lock_guard lock(mutex_);
    sizes_[address(data)] = bytes;
  }
  void remove(const void* data) {
    const std::lock_guard lock(mutex_);
    sizes_.erase(address(data));
  }
  bool holds(const void* data) const {
    const std::lock_guard lock(mutex_);
    const auto next = sizes_.upper_bound(address(data));
    if (next == sizes_.begin()) return false;
    const auto& [first, bytes] = *std::prev(next);
    return address(data) - first < bytes;
  }

 private:
  static uintptr_t address(const void* data) { return reinterpret_cast<uintptr_t>(data); }

  mutable std::mutex mutex_;
  std::map<uintptr_t, size_t> sizes_;
};

Blocks& blocks() {
  static Blocks& made = *new Blocks;
  return made;
}

void release(void* context) {
  const std::unique_ptr<c10::DataPtr> held(static_cast<c10::DataPtr*>(context));
  blocks().remove(held->get());
}

class Pinned final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    auto held = std::make_unique<c10::DataPtr>(c10::GetCPUAllocator()->allocate(bytes));
    void* data = held->get();
    if (!data) return {nullptr, c10::Device(c10::kCPU)};
    blocks().add(data, bytes);
    return {data, held.release(), &release, c10::Device(c10::kCPU)};
  }
  void copy_data(void* to, const void* from, size_t bytes) const override {
    std::memcpy(to, from, bytes);
  }
};

}  // namespace

c10::Allocator& pinned_allocator() {
  static Pinned& made = *new Pinned;
  return made;
}

bool is_pinned(const void* data) { return blocks().holds(data); }

}  // namespace anymps::aten
