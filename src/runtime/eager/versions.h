// SPDX-License-Identifier: Apache-2.0
// Kernels of calls whose caller tells the versions of some inputs: as long as address, description
// and version are the same, the elements are. Such an input is a constant to its kernel, which
// packs it once. Kept is one kernel for each call and memory, the one of the last version, up to a
// number of packed bytes; what was used longest ago goes first.
#pragma once

#include <array>
#include <atomic>
#include <list>
#include <map>
#include <memory>
#include <span>

#include "base/fork.h"
#include "runtime/eager/entry.h"
#include "runtime/tensor_view.h"

namespace anymps {

class VersionedKernels {
 public:
  static constexpr int kMostSources = 4;

  // The inputs of a call that have versions.
  struct Sources {
    uint64_t call = 0;  // the entry of the call without versions
    int count = 0;
    std::array<const char*, kMostSources> data = {};
    std::array<uint64_t, kMostSources> versions = {};
    std::array<ByteRange, kMostSources> reach = {};
  };

  // Null: there is none for these versions. One for others is let go.
  std::shared_ptr<EagerEntry> find(const Sources& sources);
  // `bytes` is what the kernel packed, `most` what all of them may have.
  void keep(const Sources& sources, std::shared_ptr<EagerEntry> entry, size_t bytes, size_t most);
  // Lets go of all that was made from the memory.
  void forget(const void* memory, size_t bytes);
  void clear();
  bool empty() const { return count_.load(std::memory_order_relaxed) == 0; }

 private:
  using Key = std::pair<uint64_t, std::array<const char*, kMostSources>>;
  struct Item {
    Sources sources;
    std::shared_ptr<EagerEntry> entry;
    size_t bytes = 0;
  };
  using Items = std::list<Item>;  // the last used first

  static Key key_of(const Sources& sources) { return {sources.call, sources.data}; }
  void take(Items::iterator item, Items& gone);

  std::atomic<int64_t> count_{0};
  ForkMutex mutex_;  // guards what follows
  Items items_;
  std::map<Key, Items::iterator> index_;
  size_t bytes_ = 0;
};

}  // namespace anymps
