// SPDX-License-Identifier: Apache-2.0
// Devices, memory and tensors of the C interface.
#include <cstring>
#include <map>
#include <mutex>

#include "api/handles.h"
#include "base/fork.h"
#include "runtime/eager/eager.h"

using namespace anymps;
using namespace anymps::api;

namespace {

// Copies as much of a versioned struct as the caller knows.
template <typename Struct>
void give(Struct* to, Struct from) {
  const size_t size = std::min(need(to, "stats").size, sizeof(Struct));
  require(size >= sizeof(size_t), "[api] stats.size must be set to sizeof the struct");
  from.size = size;
  std::memcpy(static_cast<void*>(to), &from, size);
}

amps_tensor* new_tensor(amps_device* device, Tensor tensor) {
  auto* handle = new amps_tensor;
  handle->device = device;
  handle->tensor = std::move(tensor);
  return handle;
}

TensorDesc checked_desc(amps_dtype dtype, size_t rank, const int64_t* dims,
                        const int64_t* strides) {
  TensorDesc desc(checked_dtype(dtype), checked_shape(rank, dims));
  desc.bytes();
  if (strides) desc.strides = Strides(strides, strides + rank);
  return desc;
}

}  // namespace

void anymps::api::give_cache(amps_cache_stats* to, const CacheStats& stats) {
  give(to, {sizeof(amps_cache_stats), stats.size, stats.capacity, stats.hits, stats.misses,
            stats.evictions});
}

extern "C" {

amps_status amps_device_get(const char* name, amps_device** device) {
  return guard([&] {
    need(device, "device");
    DevicePtr found = Device::get(name ? name : "");
    static auto& mutex = *new ForkMutex;  // never destroyed, like the devices
    static auto& handles = *new std::map<Device*, std::unique_ptr<amps_device>>;
    std::lock_guard lock(mutex);
    auto& handle = handles[found.get()];
    if (!handle) handle.reset(new amps_device{found, found->driver().description()});
    *device = handle.get();
  });
}

size_t amps_device_count(void) { return driver_names().size(); }
const char* amps_device_name_at(size_t index) {
  static const std::vector<std::string> names = driver_names();
  return index < names.size() ? names[index].c_str() : nullptr;
}
const char* amps_device_name(const amps_device* device) {
  return device ? device->device->name().c_str() : "";
}
const char* amps_device_description(amps_device* device) {
  return device ? device->description.c_str() : "";
}
int amps_device_max_threads(amps_device* device) {
  return device ? device->device->driver().max_threads() : 0;
}
amps_status amps_device_set_max_threads(amps_device* device, int threads) {
  return guard([&] {
    require(threads >= 1 && threads <= AMPS_MAX_THREADS,
            "[threads] {} threads: 1 to {} can be asked for", threads, AMPS_MAX_THREADS);
    need(device, "device").device->driver().set_max_threads(threads);
  });
}
amps_status amps_device_thread_times(amps_device* device, double* helped, double* waited) {
  return guard([&] {
    const ThreadTimes times = need(device, "device").device->driver().thread_times();
    need(helped, "helped") = times.helped;
    need(waited, "waited") = times.waited;
  });
}
amps_status amps_device_parallel(amps_device* device, size_t count, int threads,
                                 void (*fn)(void* context, size_t index), void* context) {
  return guard([&] {
    require(fn != nullptr, "[parallel] fn is NULL");
    need(device, "device").device->driver().parallel(count, threads, [&](size_t i) {
      fn(context, i);
    });
  });
}
amps_status amps_device_synchronize(amps_device* device) {
  return guard([&] {
    Deferral::flush_device(*need(device, "device").device);
    device->device->queue().synchronize();
  });
}

amps_status amps_device_memory_info(amps_device* device, uint64_t* free_bytes,
                                    uint64_t* total_bytes) {
  return guard([&] {
    Allocator& allocator = need(device, "device").device->allocator();
    const uint64_t total = allocator.limit(), used = allocator.stats().allocated;
    need(free_bytes, "free_bytes") = total - std::min(total, used);
    need(total_bytes, "total_bytes") = total;
  });
}

amps_status amps_buffer_create(amps_device* device, size_t bytes, amps_buffer** buffer) {
  return guard([&] {
    need(buffer, "buffer") = nullptr;
    *buffer = new amps_buffer{device, need(device, "device").device->allocator().allocate(bytes)};
  });
}
void* amps_buffer_data(const amps_buffer* buffer) {
  return buffer ? buffer->buffer->data() : nullptr;
}
size_t amps_buffer_size(const amps_buffer* buffer) { return buffer ? buffer->buffer->size() : 0; }
amps_status amps_buffer_record_stream(amps_buffer* buffer, amps_stream* stream) {
  return guard([&] {
    Buffer& memory = *need(buffer, "buffer").buffer;
    const auto& deferral = need(stream, "stream").deferral;
    if (deferral && deferral->keep(buffer->buffer)) return;
    memory.keep_until(stream->queue->record());
  });
}
void amps_buffer_release(amps_buffer* buffer) {
  if (!buffer) return;
  buffer->device->device->eager().forget(buffer->buffer->data(), buffer->buffer->size());
  delete buffer;
}

amps_status amps_device_memory_stats(amps_device* device, amps_memory_stats* stats) {
  return guard([&] {
    const MemoryStats now = need(device, "device").device->allocator().stats();
    give(stats, {sizeof(amps_memory_stats), now.allocated, now.reserved, now.pooled,
                 now.peak_allocated, now.peak_reserved, now.allocs, now.frees, now.raw_allocs,
                 now.pool_hits, device->device->packed().bytes()});
  });
}
amps_status amps_device_reset_peaks(amps_device* device) {
  return guard([&] { need(device, "device").device->allocator().reset_peaks(); });
}
amps_status amps_device_empty_cache(amps_device* device) {
  return guard([&] { need(device, "device").device->allocator().empty_cache(); });
}
amps_status amps_device_trim(amps_device* device) {
  return guard([&] { need(device, "device").device->allocator().trim(); });
}
amps_status amps_device_set_memory_limit(amps_device* device, size_t bytes) {
  return guard([&] { need(device, "device").device->allocator().set_limit(bytes); });
}

amps_status amps_device_executable_cache(amps_device* device, amps_cache_stats* stats) {
  return guard([&] { give_cache(stats, need(device, "device").device->executables().stats()); });
}
amps_status amps_device_eager_cache(amps_device* device, amps_cache_stats* stats) {
  return guard([&] { give_cache(stats, need(device, "device").device->eager().stats()); });
}
amps_status amps_device_clear_caches(amps_device* device) {
  return guard([&] {
    need(device, "device").device->executables().clear();
    device->device->eager().clear();
  });
}

static void refuse_strings(const TensorDesc& desc) {
  require(desc.dtype != DType::kString,
          "[api] strings are not plain memory: amps_tensor_from_strings makes them, "
          "amps_tensor_string reads them");
}
static const Tensor& single_tensor(const amps_tensor* tensor) {
  require(need(tensor, "tensor").tensor.container == Container::kTensor,
          "[api] not a tensor but a list or an optional: amps_tensor_item gives what it holds");
  return tensor->tensor;
}

amps_status amps_tensor_empty(amps_device* device, amps_dtype dtype, size_t rank,
                              const int64_t* dims, amps_tensor** tensor) {
  return guard([&] {
    need(tensor, "tensor") = nullptr;
    const TensorDesc desc = checked_desc(dtype, rank, dims, nullptr);
    refuse_strings(desc);
    *tensor = new_tensor(device, need(device, "device").device->empty(desc.dtype, desc.shape));
  });
}

amps_status amps_tensor_from_host(amps_device* device, amps_dtype dtype, size_t rank,
                                  const int64_t* dims, const int64_t* strides, const void* data,
                                  amps_tensor** tensor) {
  return guard([&] {
    need(tensor, "tensor") = nullptr;
    const TensorDesc desc = checked_desc(dtype, rank, dims, strides);
    refuse_strings(desc);
    require(data != nullptr || desc.count() == 0, "[api] data is NULL");
    settle();
    *tensor = new_tensor(device, need(device, "device").device->from_host(desc, data));
  });
}

amps_status amps_tensor_wrap(amps_device* device, amps_dtype dtype, size_t rank,
                             const int64_t* dims, const int64_t* strides, void* data,
                             void (*release)(void*), void* context, amps_tensor** tensor) {
  return guard([&] {
    need(tensor, "tensor") = nullptr;
    require(need(device, "device").device->driver().traits().host_visible,
            "[api] device '{}' does not share the host's memory: use amps_tensor_from_host",
            device->device->name());
    // The handle first: once the memory is the buffer's, nothing may fail.
    auto made = std::make_unique<amps_tensor>();
    made->device = device;
    Tensor& wrapped = made->tensor;
    wrapped.desc = checked_desc(dtype, rank, dims, strides);
    refuse_strings(wrapped.desc);
    require(data != nullptr || wrapped.desc.count() == 0, "[api] data is NULL");
    static char nothing;  // an empty tensor still has an address
    const Span span = span_of(wrapped.desc);
    const auto size = static_cast<int64_t>(size_of(wrapped.desc.dtype));
    wrapped.offset = -span.low * size;
    wrapped.buffer = Buffer::external(
        data ? static_cast<char*>(data) - wrapped.offset : &nothing,
        (span.high - span.low + 1) * size,
        release ? std::function<void(void*)>([=](void*) { release(context); }) : nullptr);
    *tensor = made.release();
  });
}

amps_status amps_tensor_view(const amps_tensor* tensor, size_t rank, const int64_t* dims,
                             const int64_t* strides, int64_t offset, amps_tensor** view) {
  return guard([&] {
    need(view, "view") = nullptr;
    const Tensor& whole = single_tensor(tensor);
    Tensor part = whole;
    part.desc = checked_desc(static_cast<amps_dtype>(whole.desc.dtype), rank, dims, strides);
    const Span span = span_of(part.desc);
    const auto size = static_cast<int64_t>(size_of(whole.desc.dtype));
    const int64_t first = static_cast<int64_t>(whole.offset) / size;
    const int64_t last = std::ssize(*whole.buffer) / size;
    const bool empty = span.high < span.low;
    int64_t start = 0, low = 0, high = 0;
    const bool overflow = __builtin_add_overflow(first, offset, &start) ||
                          __builtin_add_overflow(start, span.low, &low) ||
                          __builtin_add_overflow(start, span.high, &high);
    require(!overflow && (empty || (low >= 0 && high < last)),
            "[api] the view reaches outside the tensor's memory");
    part.offset = empty ? 0 : static_cast<size_t>(start * size);
    *view = new_tensor(tensor->device, std::move(part));
  });
}

amps_status amps_tensor_to_host(const amps_tensor* tensor, void* data, size_t bytes) {
  return guard([&] {
    const TensorDesc& desc = single_tensor(tensor).desc;
    refuse_strings(desc);
    require(bytes == desc.bytes(), "[api] the tensor has {} bytes, room for {} given", desc.bytes(),
            bytes);
    require(data != nullptr || bytes == 0, "[api] data is NULL");
    settle();
    tensor->device->device->to_host(tensor->tensor, data);
  });
}

amps_dtype amps_tensor_dtype(const amps_tensor* tensor) {
  return tensor ? static_cast<amps_dtype>(tensor->tensor.desc.dtype) : amps_dtype{};
}
size_t amps_tensor_rank(const amps_tensor* tensor) {
  return tensor ? tensor->tensor.desc.shape.size() : 0;
}
const int64_t* amps_tensor_dims(const amps_tensor* tensor) {
  return tensor ? tensor->tensor.desc.shape.data() : nullptr;
}
const int64_t* amps_tensor_strides(const amps_tensor* tensor) {
  return tensor ? tensor->tensor.desc.strides.data() : nullptr;
}
size_t amps_tensor_bytes(const amps_tensor* tensor) {
  return tensor ? tensor->tensor.desc.bytes() : 0;
}
void* amps_tensor_data(const amps_tensor* tensor) {
  return tensor && tensor->tensor.buffer ? tensor->tensor.data() : nullptr;
}
void amps_tensor_retain(amps_tensor* tensor) {
  if (tensor) tensor->references.fetch_add(1, std::memory_order_relaxed);
}
void amps_tensor_release(amps_tensor* tensor) {
  if (tensor && tensor->references.fetch_sub(1, std::memory_order_acq_rel) == 1) delete tensor;
}

}  // extern "C"
