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
  return get_from(constant, {constant.id(), layout}, bytes,
                  [&](const std::byte* plain, void* packed) {
                    map_for_writing(packed, bytes);
                    pack(plain, packed);
                  });
}

BufferRef PackedWeights::get_scaled(
    const Constant& constant, size_t channels, const std::string& layout, size_t bytes,
    const std::function<void(const std::byte*, const double*, void*)>& pack) {
  const Constant::Scaled* const scaled = constant.scaled();
  const bool later = scaled && scaled->factors.size() == channels;
  const double* const factors = later ? scaled->factors.data() : nullptr;
  return get_from(later ? *scaled->plain : constant, {constant.id(), layout}, bytes,
                  [&](const std::byte* plain, void* packed) { pack(plain, factors, packed); });
}

BufferRef PackedWeights::get_from(const Constant& source, Key key, size_t bytes,
                                  const std::function<void(const std::byte*, void*)>& pack) {
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
    const Constant::Bytes plain = source.data();
    pack(plain.get(), packed->data());
  } catch (...) {
    error = std::current_exception();
  }
  source.release();
  lock.lock();
  busy_.erase(key);
  done_.notify_all();
  if (error) std::rethrow_exception(error);
  entries_[std::move(key)] = packed;
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
