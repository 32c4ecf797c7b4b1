// SPDX-License-Identifier: Apache-2.0
#include "drivers/driver.h"

#include <cstring>
#include <map>
#include <mutex>

#include "base/fork.h"
#include "drivers/host_queue.h"

namespace anymps {

namespace {

struct Slot {
  std::function<std::unique_ptr<Driver>()> make;
  std::unique_ptr<Driver> driver;
};

std::map<std::string, Slot>& slots() {
  // Never destroyed: a stream may still compute when the program ends.
  static auto& all = *new std::map<std::string, Slot>;
  return all;
}

}  // namespace

std::unique_ptr<Queue> Driver::create_queue() { return std::make_unique<HostQueue>(); }

void Driver::copy_to_device(void* device, const void* host, size_t bytes, Queue*) {
  if (bytes) std::memcpy(device, host, bytes);
}
void Driver::copy_to_host(void* host, const void* device, size_t bytes, Queue*) {
  if (bytes) std::memcpy(host, device, bytes);
}
void Driver::copy_on_device(void* to, const void* from, size_t bytes, Queue*) {
  if (bytes) std::memmove(to, from, bytes);
}

void Driver::set_max_threads(int threads) {
  if (threads != 1)
    fail(Code::kUnsupported, "[threads] the driver {} has one thread, not {}", name(), threads);
}

void Driver::parallel(size_t count, int, const std::function<void(size_t)>& fn) {
  for (size_t i = 0; i < count; ++i) fn(i);
}

Driver& get_driver(const std::string& name) {
  static auto& mutex = *new ForkMutex;
  std::lock_guard lock(mutex);
  auto it = slots().find(name);
  if (it == slots().end())
    fail(Code::kNotFound, "[device] there is no driver '{}'; known are {}", name,
         fmt::join(driver_names(), ", "));
  if (!it->second.driver) it->second.driver = it->second.make();
  return *it->second.driver;
}

std::vector<std::string> driver_names() {
  std::vector<std::string> names;
  for (const auto& [name, slot] : slots()) names.push_back(name);
  return names;
}

DriverRegistrar::DriverRegistrar(const char* name, std::function<std::unique_ptr<Driver>()> make) {
  slots()[name].make = std::move(make);
}

}  // namespace anymps
