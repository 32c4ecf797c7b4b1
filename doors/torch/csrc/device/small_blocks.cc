// SPDX-License-Identifier: Apache-2.0
#include "device/small_blocks.h"

#include <array>
#include <bit>
#include <utility>

#include "device/allocator.h"
#include "device/tensor_bytes.h"
#include "engine.h"

namespace anymps::aten {

namespace {

constexpr size_t kLeastBytes = 64;
constexpr size_t kSizes = std::bit_width(kMostSmallBytes / kLeastBytes);  // 64, 128, … 4096
constexpr size_t kMostKept = 16;                                          // of each size

constexpr size_t bytes_of(size_t size) { return kLeastBytes << size; }
size_t size_for(size_t bytes) { return std::bit_width((bytes - 1) / kLeastBytes); }

// Tensors may go after what is thread_local: this outlives it.
thread_local bool at_the_end = false;

class ThreadBlocks {
 public:
  ThreadBlocks() = default;
  ~ThreadBlocks() {
    at_the_end = true;
    release();
  }
  ThreadBlocks(const ThreadBlocks&) = delete;
  ThreadBlocks& operator=(const ThreadBlocks&) = delete;

  static ThreadBlocks& of_this_thread() {
    thread_local ThreadBlocks blocks;
    return blocks;
  }

  amps_buffer* take(size_t size) {
    Kept& kept = kept_[size];
    if (kept.count == 0) return nullptr;
    return kept.blocks[--kept.count];
  }
  bool keep(size_t size, amps_buffer* block) {
    Kept& kept = kept_[size];
    if (kept.count == kMostKept) return false;
    kept.blocks[kept.count++] = block;
    return true;
  }
  void release() {
    for (size_t size = 0; size < kSizes; ++size)
      while (amps_buffer* block = take(size)) engine().buffer_release(block);
  }

 private:
  struct Kept {
    std::array<amps_buffer*, kMostKept> blocks;
    size_t count = 0;
  };
  std::array<Kept, kSizes> kept_;
};

template <size_t kSize>
void let_go(void* context) {
  auto* block = static_cast<amps_buffer*>(context);
  tensor_bytes.subtract(bytes_of(kSize));
  if (at_the_end || !ThreadBlocks::of_this_thread().keep(kSize, block))
    engine().buffer_release(block);
}

template <size_t... kSize>
constexpr std::array<c10::DeleterFnPtr, sizeof...(kSize)> deleters(std::index_sequence<kSize...>) {
  return {&let_go<kSize>...};
}
constexpr auto kDeleters = deleters(std::make_index_sequence<kSizes>());

}  // namespace

c10::DataPtr small_block(size_t bytes) {
  const size_t size = size_for(bytes);
  amps_buffer* block = at_the_end ? nullptr : ThreadBlocks::of_this_thread().take(size);
  if (!block) check(engine().buffer_create(device(), bytes_of(size), &block));
  tensor_bytes.add(bytes_of(size));
  return {engine().buffer_data(block), block, kDeleters[size], kDevice};
}

void release_small_blocks() {
  if (!at_the_end) ThreadBlocks::of_this_thread().release();
}

}  // namespace anymps::aten
