// SPDX-License-Identifier: Apache-2.0
// A table of fixed size, so that a write looks at a few words and takes no lock.
#include "device/written.h"

#include <array>
#include <mutex>

namespace anymps::aten {

std::atomic<int> watched_storages{0};

namespace {

constexpr int kSlots = 1 << 14, kProbes = 8;

struct Slot {
  std::atomic<const c10::StorageImpl*> storage{nullptr};
  std::atomic<uint64_t> writes{0};
  int users = 0;  // under the mutex
};

std::array<Slot, kSlots>& slots() {
  static auto& table = *new std::array<Slot, kSlots>;
  return table;
}

std::mutex& mutex() {
  static auto& lock = *new std::mutex;
  return lock;
}

int first_slot(const c10::StorageImpl* storage) {
  const auto address = static_cast<uint64_t>(reinterpret_cast<uintptr_t>(storage));
  return static_cast<int>((address * 0x9E3779B97F4A7C15u) >> 50);  // the 14 upper bits
}
static_assert(kSlots == 1 << (64 - 50));

Slot& probed(int first, int probe) { return slots()[(first + probe) % kSlots]; }

// The slot of a storage, or a free one for it; -1 if there is none.
int take_slot(const c10::StorageImpl* storage) {
  const std::lock_guard lock(mutex());
  const int first = first_slot(storage);
  int free = -1;
  for (int probe = 0; probe < kProbes; ++probe) {
    Slot& slot = probed(first, probe);
    if (slot.storage.load(std::memory_order_relaxed) == storage) {
      ++slot.users;
      return (first + probe) % kSlots;
    }
    if (free < 0 && slot.users == 0) free = (first + probe) % kSlots;
  }
  if (free < 0) return -1;
  slots()[free].users = 1;
  slots()[free].storage.store(storage, std::memory_order_release);
  watched_storages.fetch_add(1);
  return free;
}

void leave_slot(int at) {
  const std::lock_guard lock(mutex());
  Slot& slot = slots()[at];
  if (--slot.users > 0) return;
  slot.storage.store(nullptr, std::memory_order_release);
  watched_storages.fetch_sub(1);
}

}  // namespace

Watched::Watched(const c10::Storage& storage)
    : held_(storage.getWeakStorageImpl()),
      storage_(storage.unsafeGetStorageImpl()),
      slot_(take_slot(storage_)) {}

Watched::~Watched() {
  if (slot_ >= 0) leave_slot(slot_);
}

uint64_t Watched::writes() const {
  static std::atomic<uint64_t> always{0};
  if (slot_ < 0) return always.fetch_add(1);
  return slots()[slot_].writes.load(std::memory_order_acquire);
}

void note_write_of_watched(const c10::StorageImpl* storage) {
  const int first = first_slot(storage);
  for (int probe = 0; probe < kProbes; ++probe) {
    Slot& slot = probed(first, probe);
    if (slot.storage.load(std::memory_order_acquire) == storage) {
      slot.writes.fetch_add(1, std::memory_order_release);
      return;
    }
  }
}

}  // namespace anymps::aten
