// SPDX-License-Identifier: Apache-2.0
#include "device/allocator.h"

#include <cstdlib>
#include <cstring>
#include <string>

#include "device/small_blocks.h"
#include "device/tensor_bytes.h"
#include "engine.h"

namespace anymps::aten {

namespace {

// Upstream's: what a process may take is this many times what the device recommends.
constexpr double kDefaultRatio = 1.7;

amps_memory_stats statistics() {
  amps_memory_stats stats{};
  stats.size = sizeof(stats);
  check(engine().device_memory_stats(device(), &stats));
  return stats;
}

void release(void* context) {
  auto* buffer = static_cast<amps_buffer*>(context);
  tensor_bytes.subtract(engine().buffer_size(buffer));
  engine().buffer_release(buffer);
}

void set_limit(double fraction) {
  TORCH_CHECK(fraction >= 0 && fraction <= 2, "Invalid fraction:", fraction, ". It is 0 to 2.");
  const auto bytes = static_cast<size_t>(fraction * static_cast<double>(recommended_memory()));
  // No limit, or one above what there is, is what there is: the system would end the process
  // instead of refusing.
  check(engine().device_set_memory_limit(
      device(), fraction == 0 || bytes > recommended_memory() ? 0 : bytes));
}

bool set_limit_of_environment() {
  const char* text = std::getenv("PYTORCH_MPS_HIGH_WATERMARK_RATIO");
  char* end = nullptr;
  const double ratio = text && *text ? std::strtod(text, &end) : kDefaultRatio;
  TORCH_CHECK((!end || *end == 0) && ratio >= 0 && ratio <= 2, "invalid high watermark ratio ",
              text, ": PYTORCH_MPS_HIGH_WATERMARK_RATIO is 0 (no limit) to 2");
  set_limit(ratio);
  return true;
}

// Before the first allocation, and before the program sets another limit.
void ensure_limit() {
  static const bool set = set_limit_of_environment();
  static_cast<void>(set);
}

class Allocator final : public c10::DeviceAllocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    ensure_limit();
    if (bytes == 0) return {nullptr, kDevice};
    if (bytes <= kMostSmallBytes) return small_block(bytes);
    amps_buffer* buffer = nullptr;
    check(engine().buffer_create(device(), bytes, &buffer));
    tensor_bytes.add(engine().buffer_size(buffer));
    return {engine().buffer_data(buffer), buffer, &release, kDevice};
  }
  void copy_data(void* to, const void* from, size_t bytes) const override {
    std::memcpy(to, from, bytes);
  }

  bool initialized() override { return true; }
  void emptyCache(c10::MempoolId_t) override { empty_cache(); }
  void recordStream(const c10::DataPtr&, c10::Stream) override {
  }  // calls are done when they return
  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex) override {
    const amps_memory_stats held = statistics();
    c10::CachingDeviceAllocator::DeviceStats stats;
    const auto set = [](auto& stat, uint64_t current, uint64_t peak) {
      stat[0].current = static_cast<int64_t>(current);
      stat[0].peak = static_cast<int64_t>(peak);
    };
    for (auto* stat : {&stats.allocated_bytes, &stats.active_bytes, &stats.requested_bytes})
      set(*stat, tensor_bytes.now(), tensor_bytes.peak());
    set(stats.reserved_bytes, held.reserved, held.peak_reserved);
    return stats;
  }
  std::pair<size_t, size_t> getMemoryInfo(c10::DeviceIndex) override {
    uint64_t free = 0, total = 0;
    check(engine().device_memory_info(device(), &free, &total));
    return {free, total};
  }
  void resetAccumulatedStats(c10::DeviceIndex) override {}
  void resetPeakStats(c10::DeviceIndex) override {
    tensor_bytes.reset_peak();
    check(engine().device_reset_peaks(device()));
  }
};

}  // namespace

c10::DeviceAllocator& allocator() {
  static Allocator& made = *new Allocator;  // tensors may go after the end of main
  return made;
}

size_t recommended_memory() {
  uint64_t free = 0, total = 0;
  check(engine().device_memory_info(device(), &free, &total));
  static const uint64_t machine = total;  // before a limit of ours
  return machine;
}

void set_memory_fraction(double fraction) {
  ensure_limit();
  set_limit(fraction);
}

size_t allocated_memory() { return tensor_bytes.now(); }
size_t reserved_memory() { return statistics().reserved; }
void empty_cache() {
  release_small_blocks();
  check(engine().device_empty_cache(device()));
}

REGISTER_ALLOCATOR(c10::DeviceType::MPS, &allocator())

}  // namespace anymps::aten
