// SPDX-License-Identifier: Apache-2.0
#include "runtime/eager/entry.h"

namespace anymps {

EagerEntry::EagerEntry(PreparedCall prepared) : id(next_id()), call(std::move(prepared)) {}

RememberedEntries& RememberedEntries::of_this_thread() {
  thread_local RememberedEntries entries;
  return entries;
}

void RememberedEntries::forget(uint64_t epoch) {
  for (Slot& slot : slots_)
    if (slot.epoch == epoch && slot.pins == 0) slot.entry.reset();
}

}  // namespace anymps
