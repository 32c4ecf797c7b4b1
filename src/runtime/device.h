// SPDX-License-Identifier: Apache-2.0
// A device: a driver with its memory, its packed weights, its default queue and its caches.
#pragma once

#include <memory>
#include <string>

#include "drivers/driver.h"
#include "drivers/packed_weights.h"
#include "memory/allocator.h"
#include "runtime/lru_cache.h"
#include "runtime/tensor.h"

namespace anymps {

class ChoiceStore;
class Eager;
class Executable;

class Device : public std::enable_shared_from_this<Device> {
 public:
  // "cpu" or "cpu:0" is the first device of a driver, "cpu:1" the second, with memory, accounting
  // and caches of its own; each is made at the first use. "": ANYMPS_DRIVER.
  static std::shared_ptr<Device> get(const std::string& name = "");
  explicit Device(Driver& driver, std::string name = "");
  ~Device();

  Driver& driver() { return driver_; }
  const std::string& name() const { return name_; }
  Allocator& allocator() { return *allocator_; }
  PackedWeights& packed() { return packed_; }
  Queue& queue() { return *queue_; }
  std::unique_ptr<Queue> create_queue() { return driver_.create_queue(); }

  Tensor empty(DType dtype, Shape shape);
  Tensor from_host(const TensorDesc& desc, const void* data);  // copies, any strides
  // Copies, contiguous result.
  void to_host(const Tensor& tensor, void* data) { to_host(tensor, data, *queue_); }
  void to_host(const Tensor& tensor, void* data, Queue& queue);
  // Itself, or a contiguous copy.
  Tensor contiguous(const Tensor& tensor) { return contiguous(tensor, *queue_); }
  Tensor contiguous(const Tensor& tensor, Queue& queue);
  // The elements of a tensor of integers or bools, row-major.
  std::vector<int64_t> integers(const Tensor& tensor, Queue& queue);
  // Elements from one tensor to another of the same dtype and shape, whatever the strides.
  void copy(const Tensor& from, const Tensor& to, Queue& queue);

  // Executables by the fingerprint of their graph and options.
  LruCache<std::string, Executable>& executables() { return executables_; }
  Eager& eager() { return *eager_; }
  ChoiceStore& choices() { return *choices_; }  // what ANYMPS_TUNE has measured

 private:
  Driver& driver_;
  std::string name_;
  std::shared_ptr<Allocator> allocator_;
  PackedWeights packed_;
  std::unique_ptr<Queue> queue_;
  LruCache<std::string, Executable> executables_;
  std::unique_ptr<Eager> eager_;
  std::unique_ptr<ChoiceStore> choices_;
};
using DevicePtr = std::shared_ptr<Device>;

// Whether inference may look at the elements: a short list of indices, such as a shape.
bool is_list(const TensorDesc& desc);
// An integer or bool in the host's memory.
int64_t integer_at(DType dtype, const void* element);

}  // namespace anymps
