// SPDX-License-Identifier: Apache-2.0
#include "runtime/device.h"

#include <charconv>
#include <cstring>
#include <map>
#include <mutex>

#include "base/env.h"
#include "base/fork.h"
#include "base/text.h"
#include "memory/pack.h"
#include "runtime/eager/eager.h"
#include "runtime/executable.h"
#include "runtime/tuning/choice_store.h"

namespace anymps {

namespace {

constexpr size_t kEagerEntries = 4096;
constexpr int kMostDevices = 64;  // of a driver

}  // namespace

DevicePtr Device::get(const std::string& wanted) {
  // Never destroyed: a stream may still compute when the program ends.
  static auto& mutex = *new ForkMutex;
  static auto& devices = *new std::map<std::string, DevicePtr>;
  std::string name = wanted.empty() ? env_string("ANYMPS_DRIVER") : wanted;
  const size_t colon = name.find(':');
  std::string driver = name.substr(0, colon);
  if (colon != std::string::npos) {
    const std::string_view digits = std::string_view(name).substr(colon + 1);
    int index = -1;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), index);
    require(error == std::errc() && end == digits.data() + digits.size() && index >= 0 &&
                index < kMostDevices,
            "[device] '{}': the number of a device is 0 to {}", shown(name), kMostDevices - 1);
    name = index == 0 ? driver : fmt::format("{}:{}", driver, index);
  }
  Driver& found = get_driver(driver);
  std::lock_guard lock(mutex);
  DevicePtr& device = devices[name];
  if (!device) device = std::make_shared<Device>(found, name);
  return device;
}

Device::Device(Driver& driver, std::string name)
    : driver_(driver),
      name_(name.empty() ? driver.name() : std::move(name)),
      allocator_(Allocator::create(driver.create_memory())),
      packed_(allocator_),
      queue_(driver.create_queue()),
      executables_(std::max<int64_t>(env_int("ANYMPS_CACHE_SIZE"), 0)),
      eager_(std::make_unique<Eager>(*this, kEagerEntries)),
      choices_(std::make_unique<ChoiceStore>(driver)) {}

Device::~Device() = default;

Tensor Device::empty(DType dtype, Shape shape) {
  Tensor tensor;
  tensor.desc = TensorDesc(dtype, std::move(shape));
  tensor.buffer = allocator_->allocate(tensor.desc.bytes());
  return tensor;
}

Tensor Device::from_host(const TensorDesc& desc, const void* data) {
  Tensor tensor = empty(desc.dtype, desc.shape);
  if (desc.contiguous()) {
    driver_.copy_to_device(tensor.data(), data, desc.bytes(), queue_.get());
    return tensor;
  }
  if (const DriverTraits traits = driver_.traits(); traits.host_visible && traits.computes) {
    eager_->copy(view_of(desc, const_cast<void*>(data)), view_of(tensor), *queue_);
    return tensor;
  }
  std::vector<std::byte> packed(desc.bytes());
  pack(desc, static_cast<const std::byte*>(data), packed.data());
  driver_.copy_to_device(tensor.data(), packed.data(), packed.size(), queue_.get());
  return tensor;
}

void Device::to_host(const Tensor& tensor, void* data, Queue& queue) {
  const Tensor plain = contiguous(tensor, queue);
  driver_.copy_to_host(data, plain.data(), plain.desc.bytes(), &queue);
}

Tensor Device::contiguous(const Tensor& tensor, Queue& queue) {
  if (tensor.desc.contiguous()) return tensor;
  Tensor result = empty(tensor.desc.dtype, tensor.desc.shape);
  result.strings = tensor.strings;
  copy(tensor, result, queue);
  return result;
}

std::vector<int64_t> Device::integers(const Tensor& tensor, Queue& queue) {
  const DType dtype = tensor.desc.dtype;
  std::vector<char> bytes(std::max<size_t>(tensor.desc.bytes(), 1));
  to_host(tensor, bytes.data(), queue);
  std::vector<int64_t> values(tensor.desc.count());
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = integer_at(dtype, bytes.data() + i * size_of(dtype));
  return values;
}

void Device::copy(const Tensor& from, const Tensor& to, Queue& queue) {
  if (from.desc.contiguous() && to.desc.contiguous()) {
    driver_.copy_on_device(to.data(), from.data(), from.desc.bytes(), &queue);
    return;
  }
  eager_->copy(view_of(from), view_of(to), queue);
}

bool is_list(const TensorDesc& desc) {
  return contains(kIndex, desc.dtype) && desc.rank() <= 1 && desc.count() <= ValueType::kMaxContent;
}

int64_t integer_at(DType dtype, const void* element) {
  return dispatch<kInt | kBoolean>(dtype, [&]<typename T>() {
    T value;
    std::memcpy(&value, element, sizeof(T));
    return static_cast<int64_t>(value);
  });
}

}  // namespace anymps
