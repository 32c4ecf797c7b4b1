// SPDX-License-Identifier: Apache-2.0
#include "memory/buffer.h"

#include <utility>

#include "base/error.h"
#include "memory/allocator.h"

namespace anymps {

BufferRef Buffer::external(void* data, size_t size, std::function<void(void*)> deleter) {
  require(data || size == 0, "[memory] external buffer of {} bytes without an address", size);
  auto buffer = std::make_shared<Buffer>(Private());
  buffer->block_ = {data, size, nullptr};
  buffer->deleter_ = std::move(deleter);
  return buffer;
}

Buffer::~Buffer() {
  if (allocator_) {
    allocator_->free_after(block_, fences_);
    return;
  }
  for (const FenceRef& fence : fences_) fence->wait();
  if (deleter_) deleter_(block_.data);
}

void Buffer::keep_until(FenceRef fence) {
  require(fence != nullptr, "[memory] keep_until needs a fence");
  std::lock_guard lock(mutex_);
  std::erase_if(fences_, [](const FenceRef& old) { return old->done(); });
  fences_.push_back(std::move(fence));
}

}  // namespace anymps
