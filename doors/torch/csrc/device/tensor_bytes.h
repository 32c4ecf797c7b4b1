// SPDX-License-Identifier: Apache-2.0
// How many bytes the tensors hold: exactly these, neither memory that is kept for reuse nor what
// the engine has for itself (packed weights, arenas), which both count as the driver's.
#pragma once

#include <atomic>
#include <cstddef>

namespace anymps::aten {

class TensorBytes {
 public:
  void add(size_t bytes) {
    const size_t now = now_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
    size_t peak = peak_.load(std::memory_order_relaxed);
    while (now > peak && !peak_.compare_exchange_weak(peak, now, std::memory_order_relaxed)) {
    }
  }
  void subtract(size_t bytes) { now_.fetch_sub(bytes, std::memory_order_relaxed); }

  size_t now() const { return now_.load(std::memory_order_relaxed); }
  size_t peak() const { return peak_.load(std::memory_order_relaxed); }
  void reset_peak() { peak_.store(now(), std::memory_order_relaxed); }

 private:
  std::atomic<size_t> now_{0};
  std::atomic<size_t> peak_{0};
};

inline TensorBytes tensor_bytes;

}  // namespace anymps::aten
