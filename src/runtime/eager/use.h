// SPDX-License-Identifier: Apache-2.0
// An entry that stays while a call lasts: pinned in what the thread remembers, or held.
#pragma once

#include "runtime/eager/eager.h"

namespace anymps {

class Eager::Use {
 public:
  Use() = default;
  ~Use() { drop(); }
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;

  explicit operator bool() const { return entry_ != nullptr; }
  EagerEntry* operator->() const { return entry_; }
  EagerEntry& operator*() const { return *entry_; }
  // For who needs it longer.
  const std::shared_ptr<EagerEntry>& shared() const { return slot_ ? slot_->entry : held_; }
  void pin(RememberedEntries::Slot& slot) {
    drop();
    ++slot.pins;
    slot_ = &slot;
    entry_ = slot.entry.get();
  }
  void hold(std::shared_ptr<EagerEntry> entry) {
    drop();
    entry_ = entry.get();
    held_ = std::move(entry);
  }
  void drop() {
    if (slot_) --slot_->pins;
    slot_ = nullptr;
    entry_ = nullptr;
    held_.reset();
  }

 private:
  EagerEntry* entry_ = nullptr;
  RememberedEntries::Slot* slot_ = nullptr;
  std::shared_ptr<EagerEntry> held_;
};

}  // namespace anymps
