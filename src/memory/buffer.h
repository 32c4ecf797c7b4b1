// SPDX-License-Identifier: Apache-2.0
// A buffer is memory with an owner: it goes back to its allocator, or to whoever lent it, with the
// last reference and not before the streams that use it are done. It keeps its allocator alive.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>

#include "memory/fence.h"

namespace anymps {

class Allocator;
class Buffer;
struct Region;

using BufferRef = std::shared_ptr<Buffer>;

// What the allocator hands out: a plain value, without an owner.
struct Block {
  void* data = nullptr;
  size_t size = 0;  // as asked for
  Region* region = nullptr;
};

class Buffer {
  struct Private {};

 public:
  // Memory owned by others. `deleter` runs once, must not throw, and may be empty.
  static BufferRef external(void* data, size_t size, std::function<void(void*)> deleter);

  explicit Buffer(Private) {}
  ~Buffer();
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  void* data() const { return block_.data; }
  size_t size() const { return block_.size; }

  // The memory stays as it is until this fence is done, even when the last reference goes before.
  void keep_until(FenceRef fence);

 private:
  friend class Allocator;

  Block block_;
  std::shared_ptr<Allocator> allocator_;  // none: external
  std::function<void(void*)> deleter_;
  std::mutex mutex_;  // guards fences_
  Fences fences_;
};

}  // namespace anymps
