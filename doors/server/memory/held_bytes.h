// SPDX-License-Identifier: Apache-2.0
// How many bytes of requests the server holds, over all connections of both protocols, and the
// bound of that: without one, as many clients as there are connections may each send a request of
// the largest size. Whoever takes memory for what a client sends charges it here first.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

namespace anymps::server {

class HeldBytes {
 public:
  explicit HeldBytes(uint64_t limit) : limit_(limit) {}
  uint64_t limit() const { return limit_; }
  uint64_t held() const { return held_.load(std::memory_order_relaxed); }
  bool has_room(uint64_t bytes) const {
    const uint64_t now = held();
    return now <= limit_ && bytes <= limit_ - now;
  }

  // What one request holds; given back when this ends.
  class Charge {
   public:
    Charge() = default;
    explicit Charge(HeldBytes* all) : all_(all) {}  // nullptr: nothing is counted
    Charge(Charge&& other) noexcept
        : all_(other.all_), bytes_(std::exchange(other.bytes_, uint64_t{0})) {}
    Charge& operator=(Charge&& other) noexcept {
      if (this == &other) return *this;
      release();
      all_ = other.all_;
      bytes_ = std::exchange(other.bytes_, uint64_t{0});
      return *this;
    }
    ~Charge() { release(); }

    // False: that is more than there is room for, and nothing was charged.
    bool grow(uint64_t bytes) {
      if (!all_ || bytes == 0) return true;
      const uint64_t before = all_->held_.fetch_add(bytes, std::memory_order_relaxed);
      if (before > all_->limit_ || bytes > all_->limit_ - before) {
        all_->held_.fetch_sub(bytes, std::memory_order_relaxed);
        return false;
      }
      bytes_ += bytes;
      return true;
    }
    void release() {
      if (bytes_ > 0) all_->held_.fetch_sub(bytes_, std::memory_order_relaxed);
      bytes_ = 0;
    }

   private:
    HeldBytes* all_ = nullptr;
    uint64_t bytes_ = 0;
  };

 private:
  const uint64_t limit_;
  std::atomic<uint64_t> held_{0};
};

}  // namespace anymps::server
