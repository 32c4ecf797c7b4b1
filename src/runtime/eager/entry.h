// SPDX-License-Identifier: Apache-2.0
// What eager calls keep for a key: a prepared kernel and where its tensors reach; and what each
// thread remembers of it, so that a call finds its entry without a lock.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <vector>

#include "base/denormals.h"
#include "runtime/eager/key.h"
#include "runtime/preparation.h"

namespace anymps {

struct EagerEntry {
  explicit EagerEntry(PreparedCall prepared);

  const uint64_t id;  // no other entry's
  EagerKey key;
  PreparedCall call;
  PreparedCall::Open open = PreparedCall::kNothing;  // look up again with what it names
  size_t weight = 1;                                 // in the cache
  std::vector<TensorDesc> results;                   // as inferred, row-major
  std::vector<TensorDesc> written;                   // the same as the kernel writes them
  std::vector<ByteRange> input_reach, output_reach;  // of the caller's tensors
  Denormals denormals = Denormals::kAsThread;        // while it runs
  bool copies = false;                               // some input is packed, or some output aside
  bool strings = false;
  bool fixed = false;  // the kernel holds the parameters' values: look up again with them
  bool joins = false;  // may wait in a window
  bool apart = false;  // of a window: its calls must run one by one
  std::atomic<uint64_t> not_packed = 0;  // inputs that no kernel packs, though it knows them
};

// The entries that a thread used last, by hash. An entry that is in use, maybe by a call further
// down the stack, is pinned and keeps its place.
class RememberedEntries {
 public:
  struct Slot {
    uint64_t hash = 0, epoch = 0;
    std::shared_ptr<EagerEntry> entry;
    int pins = 0;
  };

  static RememberedEntries& of_this_thread();
  Slot& slot(uint64_t hash) { return slots_[hash % kSlots]; }
  void forget(uint64_t epoch);

 private:
  static constexpr size_t kSlots = 128;
  std::array<Slot, kSlots> slots_;
};

}  // namespace anymps
