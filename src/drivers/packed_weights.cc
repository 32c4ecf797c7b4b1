// SPDX-License-Identifier: Apache-2.0
#include "drivers/packed_weights.h"

namespace anymps {

BufferRef PackedWeights::get(const Constant& constant, const std::string& layout, size_t bytes,
                             const std::function<void(const std::byte*, void*)>& pack) {
  std::lock_guard lock(mutex_);
  std::weak_ptr<Buffer>& entry = entries_[{constant.id(), layout}];
  if (BufferRef found = entry.lock()) return found;
  BufferRef packed = allocator_->allocate(bytes);
  {
    const Constant::Bytes plain = constant.data();
    pack(plain.get(), packed->data());
  }
  constant.release();
  entry = packed;
  std::erase_if(entries_, [](const auto& item) { return item.second.expired(); });
  return packed;
}

size_t PackedWeights::bytes() const {
  std::lock_guard lock(mutex_);
  size_t total = 0;
  for (const auto& [key, entry] : entries_)
    if (BufferRef buffer = entry.lock()) total += buffer->size();
  return total;
}

}  // namespace anymps
