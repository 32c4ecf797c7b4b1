// SPDX-License-Identifier: Apache-2.0
#include "server/memory/cut_memory.h"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <mutex>
#include <vector>

#include "serving/error.h"

namespace anymps::server {
namespace {

// What the handler reads without locks. A free slot has begin 0.
struct Slot {
  std::atomic<uintptr_t> begin{0}, end{0};
  std::atomic<bool> cut{false};
  bool holds(uintptr_t place) const {
    const uintptr_t first = begin.load(std::memory_order_acquire);
    return first && place >= first && place < end.load(std::memory_order_relaxed);
  }
};
constinit std::array<Slot, 16384> slots;
constinit std::atomic<size_t> slots_used{0};
constinit std::atomic<bool> ever_cut{false};
struct sigaction previous;
uintptr_t page_bytes;

Slot* find_slot(uintptr_t place) {
  const size_t count = slots_used.load(std::memory_order_acquire);
  for (size_t i = 0; i < count; ++i)
    if (slots[i].holds(place)) return &slots[i];
  return nullptr;
}

// All behind the place that was touched is gone too.
void on_bus_error(int signal, siginfo_t* info, void* context) {
  const int error = errno;
  const auto place = reinterpret_cast<uintptr_t>(info->si_addr);
  if (Slot* slot = info->si_code > 0 ? find_slot(place) : nullptr) {
    const uintptr_t page = place / page_bytes * page_bytes;
    if (mmap(reinterpret_cast<void*>(page), slot->end.load(std::memory_order_relaxed) - page,
             PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
             0) != MAP_FAILED) {
      slot->cut.store(true);
      ever_cut.store(true);
      errno = error;
      return;
    }
  }
  // Not ours: whoever was there before is asked. The engine is, for files that were truncated.
  if (previous.sa_flags & SA_SIGINFO) return previous.sa_sigaction(signal, info, context);
  if (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN)
    return previous.sa_handler(signal);
  // The instruction runs again, or the signal comes again, and finds what the system does.
  sigaction(SIGBUS, &previous, nullptr);
  if (info->si_code <= 0) raise(signal);
}

class FreeSlots {
 public:
  FreeSlots() {
    page_bytes = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
    struct sigaction action {};
    action.sa_sigaction = on_bus_error;
    action.sa_flags = SA_SIGINFO;
    sigemptyset(&action.sa_mask);
    sigaction(SIGBUS, &action, &previous);
  }
  size_t take() {
    const std::lock_guard lock(mutex_);
    if (!free_.empty()) {
      const size_t slot = free_.back();
      free_.pop_back();
      return slot;
    }
    const size_t slot = slots_used.load();
    if (slot == slots.size())
      throw serving::Error(serving::Code::kUnavailable, "too many shared memory regions");
    free_.reserve(slot + 1);  // giving back must not fail
    slots_used.store(slot + 1);
    return slot;
  }
  void give_back(size_t slot) {
    const std::lock_guard lock(mutex_);
    free_.push_back(slot);
  }

 private:
  std::mutex mutex_;
  std::vector<size_t> free_;
};
FreeSlots& free_slots() {
  static FreeSlots& made = *new FreeSlots;
  return made;
}

}  // namespace

WatchedMemory::WatchedMemory(void* begin, size_t bytes) : slot_(free_slots().take()) {
  Slot& slot = slots[slot_];
  const auto first = reinterpret_cast<uintptr_t>(begin);
  slot.cut.store(false);
  slot.end.store(first + bytes);
  slot.begin.store(first, std::memory_order_release);
}

WatchedMemory::~WatchedMemory() {
  slots[slot_].begin.store(0);
  free_slots().give_back(slot_);
}

bool WatchedMemory::was_cut() const { return slots[slot_].cut.load(); }

bool was_cut(const void* place) {
  if (!ever_cut.load(std::memory_order_relaxed)) return false;
  const Slot* slot = find_slot(reinterpret_cast<uintptr_t>(place));
  return slot && slot->cut.load();
}

}  // namespace anymps::server
