// SPDX-License-Identifier: Apache-2.0
#include "memory/pages.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <vector>

#include "memory/raw_memory.h"

namespace anymps {
namespace {

TEST(Pages, LargeBlocksBeginAtLargePages) {
  if (large_page() == 0) GTEST_SKIP() << "no large pages";
  HostMemory memory;
  std::vector<std::pair<void*, size_t>> blocks;
  for (const size_t bytes : {large_page(), large_page() + 1, 3 * large_page() + 12345}) {
    void* data = memory.allocate(bytes);
    ASSERT_NE(data, nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(data) % large_page(), 0u);
    blocks.emplace_back(data, bytes);
  }
  // All of a block is there, whatever was cut off around it.
  for (const auto& [data, bytes] : blocks) std::memset(data, 1, bytes);
  for (const auto& [data, bytes] : blocks) memory.release(data, bytes);
}

TEST(Pages, MapsAnyPartForWriting) {
  HostMemory memory;
  const size_t bytes = 9 << 20;
  auto* data = static_cast<unsigned char*>(memory.allocate(bytes));
  ASSERT_NE(data, nullptr);
  data[70000] = 5;
  for (const auto& [begin, count] : std::vector<std::pair<size_t, size_t>>{
           {1, 100}, {65537, 1 << 20}, {(2 << 20) - 4096, 8192}, {3 << 20, 6 << 20}}) {
    map_for_writing(data + begin, count);
    for (size_t i = 0; i < count; i += 4096) EXPECT_EQ(data[begin + i], 0) << begin + i;
  }
  EXPECT_EQ(data[70000], 5);
  memory.release(data, bytes);
}

}  // namespace
}  // namespace anymps
