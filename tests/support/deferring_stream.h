// SPDX-License-Identifier: Apache-2.0
// A stream that puts calls off, and calls on vectors of floats, for tests.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "runtime/eager/deferral.h"

namespace anymps::testing {

using Floats = std::vector<float>;

// An op with its default attributes.
inline const BoundOp& op(const char* name) {
  static std::map<std::string, std::unique_ptr<BoundOp>> ops;
  static ForkMutex mutex;
  const std::lock_guard lock(mutex);
  auto& bound = ops[name];
  if (!bound) bound = std::make_unique<BoundOp>(get_op(name), std::span<const EagerAttr>());
  return *bound;
}

struct Stream {
  explicit Stream(const char* driver = "cpu") : device(Device::get(driver)) {}

  void call(const BoundOp& bound, const std::vector<Floats*>& in, Floats& out,
            std::span<const double> parameters = {}) {
    std::vector<int64_t> extents;
    for (const Floats* vector : in) extents.push_back(std::ssize(*vector));
    extents.push_back(std::ssize(out));
    std::vector<TensorView> views;
    for (size_t i = 0; i < in.size(); ++i)
      views.push_back({in[i]->data(), &extents[i], nullptr, DType::kF32, 1});
    const TensorView result{out.data(), &extents.back(), nullptr, DType::kF32, 1};
    deferral->call(bound, views, {&result, 1}, parameters);
  }
  void call(const char* name, const std::vector<Floats*>& in, Floats& out) {
    call(op(name), in, out);
  }

  DevicePtr device;
  std::unique_ptr<Queue> queue = device->create_queue();
  std::shared_ptr<Deferral> deferral = Deferral::create(device, *queue);
};

}  // namespace anymps::testing
