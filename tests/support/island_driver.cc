// SPDX-License-Identifier: Apache-2.0
#include "support/island_driver.h"

#include <atomic>
#include <cstring>

#include "drivers/driver.h"

namespace anymps {

namespace {

// Real memory lies at the address with this bit cleared; user space never has it set.
constexpr uintptr_t kTag = uintptr_t{1} << 62;

std::atomic<size_t> to_device_count{0}, to_host_count{0}, launch_count{0};

void* tagged(void* host) {
  return reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(host) | kTag);
}

template <typename T>
T* untagged(T* device) {
  const auto address = reinterpret_cast<uintptr_t>(device);
  if (address && !(address & kTag))
    fail(Code::kInternal, "[island] a host address was given to the device");
  return reinterpret_cast<T*>(address & ~kTag);
}

class IslandMemory final : public RawMemory {
 public:
  void* allocate(size_t bytes) override {
    void* host = host_.allocate(bytes);
    return host ? tagged(host) : nullptr;
  }
  void release(void* data, size_t bytes) noexcept override { host_.release(untagged(data), bytes); }

 private:
  HostMemory host_;
};

class IslandAdd final : public Kernel {
 public:
  explicit IslandAdd(int64_t count) : count_(count) {}
  void run(const KernelArgs& args) const override {
    ++launch_count;
    const auto* a = untagged(static_cast<const float*>(args.inputs[0]));
    const auto* b = untagged(static_cast<const float*>(args.inputs[1]));
    auto* y = untagged(static_cast<float*>(args.outputs[0]));
    for (int64_t i = 0; i < count_; ++i) y[i] = a[i] + b[i];
  }

 private:
  int64_t count_;
};

class IslandDriver final : public Driver {
 public:
  const char* name() const override { return "island"; }
  std::string description() const override { return "memory of its own, for tests"; }
  DriverTraits traits() const override {
    DriverTraits traits;
    traits.host_visible = false;
    return traits;
  }
  std::unique_ptr<RawMemory> create_memory() override { return std::make_unique<IslandMemory>(); }
  void copy_to_device(void* device, const void* host, size_t bytes, Queue*) override {
    ++to_device_count;
    if (bytes) std::memcpy(untagged(device), host, bytes);
  }
  void copy_to_host(void* host, const void* device, size_t bytes, Queue*) override {
    ++to_host_count;
    if (bytes) std::memcpy(host, untagged(device), bytes);
  }
  void copy_on_device(void* to, const void* from, size_t bytes, Queue*) override {
    if (bytes) std::memmove(untagged(to), untagged(from), bytes);
  }
};

KernelPtr make_add(const KernelRequest& request, std::string& why) {
  const TensorDesc &a = request.in(0), &b = request.in(1);
  if (a.dtype != DType::kF32) return refuse(why, "only f32");
  if (!(a.shape == b.shape) || !a.contiguous() || !b.contiguous()) return refuse(why, "broadcast");
  return std::make_shared<IslandAdd>(a.count());
}

}  // namespace

void register_island_driver() {
  static const DriverRegistrar driver("island", [] { return std::make_unique<IslandDriver>(); });
  static const KernelRegistrar add("island", "add", "own", 0, make_add);
}

IslandCounters island_counters() { return {to_device_count, to_host_count, launch_count}; }

}  // namespace anymps
