// SPDX-License-Identifier: Apache-2.0
// Devices, streams and events as PyTorch's C++ code asks for them. There is one device. Calls are
// done when they return, so a stream is a name that is always idle, and an event is the time at
// which it was recorded.
#include <atomic>
#include <chrono>

#include <c10/core/impl/DeviceGuardImplInterface.h>
#include "device/allocator.h"
#include "device/events.h"
#include "types.h"

namespace anymps::aten {

namespace {

thread_local c10::StreamId current_stream = 0;

class Guard final : public c10::impl::DeviceGuardImplInterface {
 public:
  static constexpr c10::DeviceType static_type = c10::DeviceType::MPS;

  c10::DeviceType type() const override { return static_type; }
  c10::Device exchangeDevice(c10::Device) const override { return kDevice; }
  c10::Device getDevice() const override { return kDevice; }
  void setDevice(c10::Device device) const override {
    TORCH_CHECK(device.is_mps() && device.index() <= 0, "there is no device ", device,
                ": the only one is mps:0");
  }
  void uncheckedSetDevice(c10::Device) const noexcept override {}
  c10::DeviceIndex deviceCount() const noexcept override { return 1; }

  c10::DeviceCapability getDeviceCapability(c10::Device) const override {
    c10::DeviceCapability capability;
    uint64_t bits = 0;
    for (int type = 0; type < static_cast<int>(c10::ScalarType::NumOptions); ++type)
      if (to_engine(static_cast<c10::ScalarType>(type))) bits |= uint64_t{1} << type;
    capability.capability_data.capability_bits = bits;
    return capability;
  }

  c10::Stream getStream(c10::Device) const override { return stream(current_stream); }
  c10::Stream getDefaultStream(c10::Device) const override { return stream(0); }
  c10::Stream getStreamFromGlobalPool(c10::Device device, bool) const override {
    return getNewStream(device, 0);
  }
  c10::Stream getNewStream(c10::Device, int) const override {
    static std::atomic<c10::StreamId> last{0};
    return stream(++last);
  }
  c10::Stream exchangeStream(c10::Stream to) const override {
    return stream(std::exchange(current_stream, to.id()));
  }
  bool queryStream(const c10::Stream&) const override { return true; }
  void synchronizeStream(const c10::Stream&) const override {}
  void synchronizeDevice(c10::DeviceIndex) const override {}

  void record(void** event, const c10::Stream&, c10::DeviceIndex, c10::EventFlag) const override {
    if (!*event) *event = new Moment;
    *static_cast<Moment*>(*event) = now();
  }
  void block(void*, const c10::Stream&) const override {}
  bool queryEvent(void*) const override { return true; }
  void synchronizeEvent(void*) const override {}
  void destroyEvent(void* event, c10::DeviceIndex) const noexcept override {
    delete static_cast<Moment*>(event);
  }
  double elapsedTime(void* from, void* to, c10::DeviceIndex) const override {
    return milliseconds(*static_cast<Moment*>(from), *static_cast<Moment*>(to));
  }

 private:
  static c10::Stream stream(c10::StreamId id) {
    return c10::Stream(c10::Stream::UNSAFE, kDevice, id);
  }
};

C10_REGISTER_GUARD_IMPL(MPS, Guard)

}  // namespace

}  // namespace anymps::aten
