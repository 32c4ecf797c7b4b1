// SPDX-License-Identifier: Apache-2.0
// Memory of the devices, and copies. Paddle keeps a cache of chunks of its own above these slots,
// so what it gives back goes back to the system, not into the engine's pool.
#include <pthread.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <unordered_map>

#include "engine.h"
#include "runtime/copies.h"
#include "runtime/slots.h"

namespace anymps::paddle {
namespace {

// Paddle hands back addresses; the engine wants its buffers.
class Buffers {
 public:
  static Buffers& all() {
    static Buffers& buffers = *new Buffers;  // tensors may go after the end of main
    return buffers;
  }

  void add(void* data, amps_buffer* buffer) {
    std::lock_guard lock(mutex_);
    buffers_.emplace(data, buffer);
  }

  amps_buffer* take(void* data) {
    std::lock_guard lock(mutex_);
    const auto node = buffers_.extract(data);
    return node.empty() ? nullptr : node.mapped();
  }

 private:
  // A child of fork() must find the lock free and the map whole.
  Buffers() {
    pthread_atfork([] { all().mutex_.lock(); }, [] { all().mutex_.unlock(); },
                   [] { all().mutex_.unlock(); });
  }

  std::mutex mutex_;
  std::unordered_map<void*, amps_buffer*> buffers_;
};

// Out of memory is success without an address: Paddle then frees what it caches, tries again, and
// raises its own error.
C_Status allocate(C_Device target, void** data, size_t bytes) {
  *data = nullptr;
  amps_buffer* buffer = nullptr;
  const amps_status status = engine().buffer_create(device(target->id), bytes, &buffer);
  if (status == AMPS_OUT_OF_MEMORY) return C_SUCCESS;
  check(status);
  *data = engine().buffer_data(buffer);
  Buffers::all().add(*data, buffer);
  return C_SUCCESS;
}

C_Status deallocate(C_Device target, void* data, size_t) {
  if (!data) return C_SUCCESS;
  amps_buffer* buffer = Buffers::all().take(data);
  if (!buffer) return C_ERROR;
  engine().device_synchronize(
      device(target->id));  // queued work may still use it; free when there is none
  engine().buffer_release(buffer);
  engine().device_empty_cache(device(target->id));
  return C_SUCCESS;
}

C_Status allocate_host(C_Device, void** data, size_t bytes) {
  constexpr size_t kAlignment = 64;
  *data = std::aligned_alloc(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment);
  return *data || bytes == 0 ? C_SUCCESS : C_FAILED;
}

C_Status deallocate_host(C_Device, void* data, size_t) {
  std::free(data);
  return C_SUCCESS;
}

C_Status set(C_Device, void* data, unsigned char value, size_t bytes) {
  if (bytes > 0) std::memset(data, value, bytes);
  return C_SUCCESS;
}

template <Direction direction>
C_Status copy(C_Device, void* to, const void* from, size_t bytes) {
  count_copy(direction, bytes);
  if (bytes > 0) std::memmove(to, from, bytes);
  return C_SUCCESS;
}

// In order with the stream's work, and done on return: a host that waits for nothing else may use
// the result at once.
template <Direction direction>
C_Status copy_on_stream(C_Device target, C_Stream stream, void* to, const void* from,
                        size_t bytes) {
  if (stream) check(engine().stream_synchronize(reinterpret_cast<amps_stream*>(stream)));
  return copy<direction>(target, to, from, bytes);
}

C_Status copy_to_peer(C_Device to_device, C_Device, void* to, const void* from, size_t bytes) {
  return copy<Direction::kDeviceToDevice>(to_device, to, from, bytes);
}

C_Status copy_to_peer_on_stream(C_Device to_device, C_Device, C_Stream stream, void* to,
                                const void* from, size_t bytes) {
  return copy_on_stream<Direction::kDeviceToDevice>(to_device, stream, to, from, bytes);
}

C_Status memory_info(C_Device target, size_t* total, size_t* free) {
  uint64_t free_bytes = 0, total_bytes = 0;
  check(engine().device_memory_info(device(target->id), &free_bytes, &total_bytes));
  *total = total_bytes;
  *free = free_bytes;
  return C_SUCCESS;
}

C_Status alignment(C_Device, size_t* bytes) {
  *bytes = 64;
  return C_SUCCESS;
}

struct Copies {
  std::atomic<uint64_t> count{0}, bytes{0};
};
std::array<Copies, 3> copies;

}  // namespace

void count_copy(Direction direction, size_t bytes) {
  Copies& counted = copies[static_cast<int>(direction)];
  counted.count.fetch_add(1, std::memory_order_relaxed);
  counted.bytes.fetch_add(bytes, std::memory_order_relaxed);
}

// Two numbers, count and bytes, for each Direction.
extern "C" __attribute__((visibility("default"))) void anymps_paddle_copies(uint64_t* numbers) {
  for (const Copies& counted : copies) {
    *numbers++ = counted.count.load(std::memory_order_relaxed);
    *numbers++ = counted.bytes.load(std::memory_order_relaxed);
  }
}

void fill_memory(C_DeviceInterface& slots) {
  slots.device_memory_allocate = allocate;
  slots.device_memory_deallocate = deallocate;
  slots.unified_memory_allocate = allocate;  // the engine computes in the host's memory
  slots.unified_memory_deallocate = deallocate;
  slots.host_memory_allocate = allocate_host;
  slots.host_memory_deallocate = deallocate_host;
  slots.device_memory_set = set;
  slots.memory_copy_h2d = copy<Direction::kHostToDevice>;
  slots.memory_copy_d2h = copy<Direction::kDeviceToHost>;
  slots.memory_copy_d2d = copy<Direction::kDeviceToDevice>;
  slots.memory_copy_p2p = copy_to_peer;
  slots.async_memory_copy_h2d = copy_on_stream<Direction::kHostToDevice>;
  slots.async_memory_copy_d2h = copy_on_stream<Direction::kDeviceToHost>;
  slots.async_memory_copy_d2d = copy_on_stream<Direction::kDeviceToDevice>;
  slots.async_memory_copy_p2p = copy_to_peer_on_stream;
  slots.device_memory_stats = memory_info;
  slots.device_min_chunk_size = alignment;
}

}  // namespace anymps::paddle
