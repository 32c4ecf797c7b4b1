// SPDX-License-Identifier: Apache-2.0
#include "runtime/small_blocks.h"

#include <dlfcn.h>
#include <pthread.h>

#include <array>
#include <bit>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <paddle/phi/core/memory/allocation/allocator.h>
#include <paddle/phi/core/platform/profiler/mem_tracing.h>
#include "engine.h"

// Of paddle/phi/core/memory/stats.h, which needs a header that Paddle does not bring.
namespace paddle::memory {
void DeviceMemoryStatUpdate(const std::string& name, int device, int64_t increment);
}

namespace anymps::paddle {
namespace {

constexpr size_t kAlignment = 64;  // and the least block
constexpr size_t kMost = 4096;
constexpr size_t kSizes = std::countr_zero(kMost) - std::countr_zero(kAlignment) + 1;
constexpr size_t kHead = 192;  // before a block: the object that Paddle holds, and the slab
constexpr size_t kSlab = 64 << 10;
constexpr int kMostDevices = 16;

struct Slab {
  amps_buffer* buffer;
  size_t size;  // which of the sizes its blocks have
  size_t used = 0;
};

struct Pool;

// What is before a block.
struct Head {
  union {
    alignas(16) char object[kHead - 2 * sizeof(void*)];
    Head* next;  // of a free one
  };
  Pool* pool;
  Slab* slab;
};
static_assert(sizeof(Head) == kHead);

// Paddle's count of what tensors on a device use, Stat<DeviceMemoryStatAllocated0> and so on: its
// one object and the function that changes it. By its name, as above, it takes too long.
class Allocated {
 public:
  Allocated() = default;
  explicit Allocated(int index) {
    const std::string name = "DeviceMemoryStatAllocated" + std::to_string(index);
    const std::string type = "N6paddle6memory4StatINS0_" + std::to_string(name.size()) + name;
    void* library = dlopen("libphi_core.so", RTLD_LAZY | RTLD_NOLOAD);
    if (!library) return;
    count_ = dlsym(library, ("_ZZ" + type + "EE11GetInstanceEvE8instance").c_str());
    update_ = reinterpret_cast<Update>(dlsym(library, ("_Z" + type + "EE6UpdateEl").c_str()));
  }
  explicit operator bool() const { return count_ && update_; }
  void add(int64_t bytes) const { update_(count_, bytes); }

 private:
  using Update = void (*)(void*, int64_t);
  void* count_ = nullptr;
  Update update_ = nullptr;
};

struct Pool {
  std::mutex mutex;
  std::array<Head*, kSizes> free{};
  std::vector<std::unique_ptr<Slab>> slabs;
  Allocated allocated;
  int index = 0;

  Head* take(size_t size) {
    std::lock_guard lock(mutex);
    if (!free[size] && !grow(size)) return nullptr;
    Head* head = free[size];
    free[size] = head->next;
    ++head->slab->used;
    return head;
  }

  void put(Head* head) {
    std::lock_guard lock(mutex);
    Slab& slab = *head->slab;
    head->next = std::exchange(free[slab.size], head);
    --slab.used;
  }

  bool grow(size_t size) {
    amps_buffer* buffer = nullptr;
    if (engine().buffer_create(device(index), kSlab, &buffer) != AMPS_OK) return false;
    Slab* slab = slabs.emplace_back(new Slab{buffer, size}).get();
    char* at = static_cast<char*>(engine().buffer_data(buffer));
    const size_t step = kHead + (kAlignment << size);
    for (size_t i = 0; i < kSlab / step; ++i, at += step) {
      Head* head = reinterpret_cast<Head*>(at);
      head->next = std::exchange(free[size], head);
      head->pool = this;
      head->slab = slab;
    }
    ::paddle::memory::DeviceMemoryStatUpdate("Reserved", index, kSlab);
    return true;
  }

  void release() {
    std::lock_guard lock(mutex);
    engine().device_synchronize(device(index));  // queued work may still use what is free
    for (Head*& first : free)
      for (Head** at = &first; *at;)
        if ((*at)->slab->used == 0)
          *at = (*at)->next;
        else
          at = &(*at)->next;
    std::erase_if(slabs, [&](const std::unique_ptr<Slab>& slab) {
      if (slab->used > 0) return false;
      engine().buffer_release(slab->buffer);
      ::paddle::memory::DeviceMemoryStatUpdate("Reserved", index, -static_cast<int64_t>(kSlab));
      return true;
    });
  }
};

// Tensors may go after the end of main, and a child of fork() must find the locks free.
std::array<Pool, kMostDevices>& pools() {
  static auto& all = []() -> std::array<Pool, kMostDevices>& {
    auto& made = *new std::array<Pool, kMostDevices>;
    for (int i = 0; i < device_count(); ++i) {
      made[i].index = i;
      made[i].allocated = Allocated(i);
    }
    return made;
  }();
  static const int at_fork = pthread_atfork(
      [] {
        for (Pool& pool : all) pool.mutex.lock();
      },
      [] {
        for (Pool& pool : all) pool.mutex.unlock();
      },
      [] {
        for (Pool& pool : all) pool.mutex.unlock();
      });
  static_cast<void>(at_fork);
  return all;
}

void record(const phi::Allocation& block, phi::TracerMemEventType type) {
  if (::paddle::platform::RecordMemEvent::IsEnabled())
    ::paddle::platform::RecordMemEvent(block.ptr(), block.place(), block.size(), type);
}

using Block = ::paddle::memory::allocation::Allocation;
static_assert(sizeof(Block) <= sizeof(Head::object));

void give_back(phi::Allocation* block) {
  auto* const head = reinterpret_cast<Head*>(block);
  record(*block, phi::TracerMemEventType::Free);
  head->pool->allocated.add(-static_cast<int64_t>(block->size()));
  static_cast<Block*>(block)->~Block();
  head->pool->put(head);
}

}  // namespace

phi::Allocator::AllocationPtr small_block(const phi::Place& place, size_t bytes) {
  if (bytes > kMost || bytes == 0) return nullptr;
  Pool& pool = pools()[place.GetDeviceId()];
  if (!pool.allocated) return nullptr;
  const size_t units = (bytes + kAlignment - 1) / kAlignment;
  Head* head = pool.take(std::bit_width(units - 1));
  if (!head) return nullptr;
  auto* const block = new (head->object) Block(head + 1, units * kAlignment, place);
  pool.allocated.add(static_cast<int64_t>(block->size()));
  record(*block, phi::TracerMemEventType::Allocate);
  return {block, give_back};
}

void release_small_blocks() {
  for (int i = 0; i < device_count(); ++i) pools()[i].release();
}

}  // namespace anymps::paddle
