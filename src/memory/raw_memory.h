// SPDX-License-Identifier: Apache-2.0
// Where an allocator gets its memory from: the only part of memory/ that a driver implements.
// The allocator never reads or writes the memory, so the host need not be able to see it.
#pragma once

#include <cstddef>
#include <limits>

namespace anymps {

class RawMemory {
 public:
  // Every block starts at a multiple of this.
  static constexpr size_t kAlignment = 256;

  virtual ~RawMemory() = default;

  // Returns nullptr when there is not enough memory. Never called with 0 bytes.
  virtual void* allocate(size_t bytes) = 0;
  // Takes what allocate() returned, with the same size.
  virtual void release(void* data, size_t bytes) noexcept = 0;
  // As much as there can ever be: more is refused without asking for it.
  virtual size_t capacity() const { return std::numeric_limits<size_t>::max(); }
};

// Pages of the operating system. They are zero at first and cost nothing until they are touched.
class HostMemory : public RawMemory {
 public:
  void* allocate(size_t bytes) override;
  void release(void* data, size_t bytes) noexcept override;
  size_t capacity() const override;  // of the machine or the container
};

}  // namespace anymps
