// SPDX-License-Identifier: Apache-2.0
// Stand-ins for the memory tests: raw memory that cannot be touched, a clock that is set by hand
// and a fence that is opened by hand.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>

#include "memory/allocator.h"

namespace anymps {

// Hands out addresses with no memory behind them: touching one is a crash.
class FakeMemory : public RawMemory {
 public:
  struct Books {
    std::map<uintptr_t, size_t> live;
    size_t capacity = size_t{1} << 60;
    size_t bytes = 0;
    int wrong_releases = 0;
  };

  explicit FakeMemory(std::shared_ptr<Books> books) : books_(std::move(books)) {}

  void* allocate(size_t bytes) override {
    if (bytes > books_->capacity - books_->bytes) return nullptr;
    books_->bytes += bytes;
    books_->live[next_] = bytes;
    uintptr_t address = std::exchange(next_, (next_ + bytes + 2 * kAlignment) & ~(kAlignment - 1));
    return reinterpret_cast<void*>(address);
  }

  void release(void* data, size_t bytes) noexcept override {
    auto it = books_->live.find(reinterpret_cast<uintptr_t>(data));
    if (it == books_->live.end() || it->second != bytes) {
      ++books_->wrong_releases;
      return;
    }
    books_->bytes -= bytes;
    books_->live.erase(it);
  }

 private:
  std::shared_ptr<Books> books_;
  uintptr_t next_ = uintptr_t{1} << 46;
};

class FakeFence : public Fence {
 public:
  bool done() noexcept override { return done_; }
  void wait() noexcept override {
    ++waits;
    done_ = true;
  }
  void open() { done_ = true; }

  std::atomic<int> waits{0};

 private:
  std::atomic<bool> done_{false};
};

// An allocator over fake memory and a fake clock, with what the tests look at.
struct FakeDevice {
  explicit FakeDevice(AllocatorOptions options = {}) {
    options.clock = [now = now] { return *now; };
    allocator = Allocator::create(std::make_unique<FakeMemory>(books), options);
  }
  void sleep(std::chrono::milliseconds time) { *now += time; }

  std::shared_ptr<FakeMemory::Books> books = std::make_shared<FakeMemory::Books>();
  std::shared_ptr<std::chrono::steady_clock::time_point> now =
      std::make_shared<std::chrono::steady_clock::time_point>();
  std::shared_ptr<Allocator> allocator;
};

}  // namespace anymps
