// SPDX-License-Identifier: Apache-2.0
#include "drivers/packed_weights.h"

#include "drivers/kernel.h"
#include "memory/pages.h"

namespace anymps {

void check_room(const KernelRequest& request, size_t bytes) {
  if (!request.packed || bytes <= request.packed->allocator().limit()) return;
  fail(Code::kOutOfMemory, "[{}] needs {} bytes, the device may hold {}", request.op->name, bytes,
       request.packed->allocator().limit());
}

BufferRef PackedWeights::get(const Constant& constant, const std::string& layout, size_t bytes,
                             const std::function<void(const std::byte*, void*)>& pack) {
  const Key key{constant.id(), layout};
  std::unique_lock<std::mutex> lock(mutex_);
  // Another thread may be packing the same.
  while (busy_.contains(key)) done_.wait(lock);
  if (auto found = entries_.find(key); found != entries_.end())
    if (BufferRef packed = found->second.lock()) return packed;
  busy_.insert(key);
  lock.unlock();
  BufferRef packed;
  std::exception_ptr error;
  try {
    packed = allocator_->allocate(bytes);
    map_for_writing(packed->data(), bytes);
    const Constant::Bytes plain = constant.data();
    map_for_reading(plain.get(), constant.bytes());
    pack(plain.get(), packed->data());
  } catch (...) {
    error = std::current_exception();
  }
  constant.release();
  lock.lock();
  busy_.erase(key);
  done_.notify_all();
  if (error) std::rethrow_exception(error);
  entries_[key] = packed;
  // Looking at all entries costs as much as there are: so not each time.
  if (entries_.size() >= next_sweep_) {
    std::erase_if(entries_, [](const auto& item) { return item.second.expired(); });
    next_sweep_ = 2 * entries_.size() + 16;
  }
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
