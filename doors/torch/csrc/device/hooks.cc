// SPDX-License-Identifier: Apache-2.0
// What PyTorch's own code, torch.mps among it, asks the device mps for.
#include <mutex>
#include <sstream>
#include <string>
#include <unordered_map>

#include <ATen/Context.h>
#include <ATen/detail/MPSHooksInterface.h>
#include "device/allocator.h"
#include "device/events.h"
#include "device/generator.h"
#include "device/pinned.h"
#include "engine.h"

namespace anymps::aten {

namespace {

// Events of torch.mps, which are numbers.
class Events {
 public:
  uint32_t acquire(bool timed) {
    std::lock_guard lock(mutex_);
    moments_[++last_] = {{}, timed};
    return last_;
  }
  void release(uint32_t event) {
    std::lock_guard lock(mutex_);
    moments_.erase(event);
  }
  void record(uint32_t event) {
    std::lock_guard lock(mutex_);
    find(event).moment = now();
  }
  Moment at(uint32_t event) {
    std::lock_guard lock(mutex_);
    const Event& found = find(event);
    TORCH_CHECK(found.timed, "Events were not created with argument 'enable_timing=True'");
    TORCH_CHECK(found.moment != Moment(), "the event ", event, " was never recorded");
    return found.moment;
  }

 private:
  struct Event {
    Moment moment;
    bool timed = false;
  };
  Event& find(uint32_t event) {
    const auto found = moments_.find(event);
    TORCH_CHECK(found != moments_.end(), "there is no event ", event);
    return found->second;
  }

  std::mutex mutex_;
  std::unordered_map<uint32_t, Event> moments_;
  uint32_t last_ = 0;
};

Events& events() {
  static Events& made = *new Events;
  return made;
}

}  // namespace

class MPSHooks final : public at::MPSHooksInterface {
 public:
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasMPS() const override { return true; }
  void init() const override {}
  bool isOnMacOSorNewer(unsigned, unsigned) const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
  c10::DeviceIndex deviceCount() const override { return 1; }
  c10::DeviceIndex getCurrentDevice() const override { return 0; }
  void setCurrentDevice(c10::DeviceIndex index) const override {
    TORCH_CHECK(index == 0, "there is no device mps:", static_cast<int>(index),
                ": the only one is mps:0");
  }
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex) const override { return 0; }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex) const override { return 0; }
  at::Device getDeviceFromPtr(void*) const override { return kDevice; }

  const at::Generator& getDefaultGenerator(c10::DeviceIndex) const override {
    return default_generator();
  }
  at::Generator getNewGenerator(c10::DeviceIndex) const override {
    return at::make_generator<Generator>(c10::default_rng_seed_val);
  }

  at::Allocator* getMPSDeviceAllocator() const override { return &allocator(); }
  at::Allocator* getPinnedMemoryAllocator() const override { return &pinned_allocator(); }
  bool isPinnedPtr(const void* data) const override { return is_pinned(data); }
  void emptyCache() const override { empty_cache(); }
  size_t getCurrentAllocatedMemory() const override { return allocated_memory(); }
  size_t getDriverAllocatedMemory() const override { return reserved_memory(); }
  size_t getRecommendedMaxMemory() const override { return recommended_memory(); }
  size_t getMaxBufferLength() const override { return recommended_memory(); }
  void setMemoryFraction(double fraction) const override { set_memory_fraction(fraction); }

  void deviceSynchronize() const override {}
  void commitStream() const override {}
  void* getCommandBuffer() const override { return nullptr; }
  void* getDispatchQueue() const override { return nullptr; }
  // There are no signposts to show; what the engine does is seen by PyTorch's own profiler.
  void profilerStartTrace(const std::string& modes, bool) const override {
    std::istringstream list(modes);
    for (std::string mode; std::getline(list, mode, ',');)
      TORCH_CHECK(mode == "interval" || mode == "event", "Invalid Signpost trace mode: ", mode);
  }
  void profilerStopTrace() const override {}

  uint32_t acquireEvent(bool timed) const override { return events().acquire(timed); }
  void releaseEvent(uint32_t event) const override { events().release(event); }
  void recordEvent(uint32_t event) const override { events().record(event); }
  void waitForEvent(uint32_t) const override {}
  void synchronizeEvent(uint32_t) const override {}
  bool queryEvent(uint32_t) const override { return true; }
  double elapsedTimeOfEvents(uint32_t from, uint32_t to) const override {
    return milliseconds(events().at(from), events().at(to));
  }
};

}  // namespace anymps::aten

namespace at {
using anymps::aten::MPSHooks;
REGISTER_MPS_HOOKS(MPSHooks)
}  // namespace at
