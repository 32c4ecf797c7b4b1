// SPDX-License-Identifier: Apache-2.0
#include "memory/spare_memory.h"

#include <algorithm>
#include <mutex>
#include <new>
#include <vector>

#include "base/fork.h"
#include "memory/pages.h"
#include "memory/raw_memory.h"

namespace anymps {

namespace {

constexpr std::align_val_t kAlignment{64};
constexpr size_t kLarge = 64 << 10;  // smaller ones are as cheap from the heap
constexpr size_t kStep = 256 << 10;  // sizes of large blocks are multiples of it
constexpr size_t kMost = 4;          // blocks that wait

struct SpareBlock {
  void* data = nullptr;
  size_t bytes = 0;
};

struct Spare {
  ForkMutex mutex;
  int keepers = 0;
  std::vector<SpareBlock> blocks;
};

// Never destroyed: constants may be dropped when the program ends.
Spare& spare() {
  static Spare& spare = *new Spare;
  return spare;
}

void release(const SpareBlock& block) { HostMemory().release(block.data, block.bytes); }

// The smallest that is large enough, or a new one.
SpareBlock take(size_t bytes) {
  Spare& all = spare();
  {
    std::lock_guard lock(all.mutex);
    auto best = all.blocks.end();
    for (auto it = all.blocks.begin(); it != all.blocks.end(); ++it)
      if (it->bytes >= bytes && (best == all.blocks.end() || it->bytes < best->bytes)) best = it;
    if (best != all.blocks.end()) {
      const SpareBlock block = *best;
      all.blocks.erase(best);
      return block;
    }
  }
  // As much as a large page: it costs no more, and serves the next ones too.
  const size_t whole = std::max(bytes, large_page());
  return {HostMemory().allocate(whole), whole};
}

void give_back(const SpareBlock& block) {
  Spare& all = spare();
  SpareBlock smallest = block;
  {
    std::lock_guard lock(all.mutex);
    if (all.keepers > 0) {
      all.blocks.push_back(block);
      if (all.blocks.size() <= kMost) return;
      auto least = std::min_element(
          all.blocks.begin(), all.blocks.end(),
          [](const SpareBlock& a, const SpareBlock& b) { return a.bytes < b.bytes; });
      smallest = *least;
      all.blocks.erase(least);
    }
  }
  release(smallest);
}

}  // namespace

std::shared_ptr<std::byte> spare_bytes(size_t size) {
  if (size < kLarge) {
    auto* data = static_cast<std::byte*>(
        ::operator new(std::max<size_t>(size, 1), kAlignment, std::nothrow));
    if (!data) return nullptr;
    return {data, [](std::byte* p) { ::operator delete(p, kAlignment); }};
  }
  if (size > ~size_t{0} / 2) return nullptr;
  const SpareBlock block = take((size + kStep - 1) / kStep * kStep);
  if (!block.data) return nullptr;
  return {static_cast<std::byte*>(block.data), [block](std::byte*) { give_back(block); }};
}

KeepSpareMemory::KeepSpareMemory() {
  std::lock_guard lock(spare().mutex);
  ++spare().keepers;
}

KeepSpareMemory::~KeepSpareMemory() {
  std::vector<SpareBlock> blocks;
  {
    std::lock_guard lock(spare().mutex);
    if (--spare().keepers == 0) blocks.swap(spare().blocks);
  }
  for (const SpareBlock& block : blocks) release(block);
}

}  // namespace anymps
