// SPDX-License-Identifier: Apache-2.0
#include "memory/buffer.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "fakes.h"

namespace anymps {
namespace {

TEST(Buffer, FreesWithTheLastReference) {
  FakeDevice device;
  BufferRef first = device.allocator->allocate(1000);
  BufferRef second = first;
  EXPECT_EQ(first->size(), 1000u);
  EXPECT_NE(first->data(), nullptr);
  first.reset();
  EXPECT_EQ(device.allocator->stats().allocated, 1000u);
  second.reset();
  EXPECT_EQ(device.allocator->stats().allocated, 0u);
}

TEST(Buffer, KeepsItsAllocatorAlive) {
  FakeDevice device;
  BufferRef buffer = device.allocator->allocate(1000);
  device.allocator.reset();
  EXPECT_GT(device.books->bytes, 0u);
  buffer.reset();
  EXPECT_EQ(device.books->bytes, 0u);
  EXPECT_EQ(device.books->wrong_releases, 0);
}

TEST(Buffer, ExternalMemoryGoesBackToItsOwnerOnce) {
  int value = 7;
  std::vector<void*> deleted;
  BufferRef buffer = Buffer::external(&value, sizeof value, [&](void* p) { deleted.push_back(p); });
  EXPECT_EQ(buffer->data(), &value);
  EXPECT_EQ(buffer->size(), sizeof value);
  BufferRef copy = buffer;
  buffer.reset();
  EXPECT_TRUE(deleted.empty());
  copy.reset();
  EXPECT_EQ(deleted, std::vector<void*>{&value});
}

TEST(Buffer, ExternalMemoryWaitsForItsFences) {
  int value = 7;
  auto fence = std::make_shared<FakeFence>();
  int waits_at_delete = -1;
  BufferRef buffer =
      Buffer::external(&value, sizeof value, [&](void*) { waits_at_delete = fence->waits; });
  buffer->keep_until(fence);
  buffer.reset();
  EXPECT_EQ(waits_at_delete, 1);
}

TEST(Buffer, ExternalMemoryNeedsAnAddressButNoDeleter) {
  EXPECT_THROW(Buffer::external(nullptr, 4, {}), Error);
  EXPECT_EQ(Buffer::external(nullptr, 0, {})->size(), 0u);
}

TEST(Buffer, StaysAllocatedUntilAllFencesAreDone) {
  FakeDevice device;
  auto one = std::make_shared<FakeFence>(), two = std::make_shared<FakeFence>();
  BufferRef buffer = device.allocator->allocate(1000);
  buffer->keep_until(one);
  buffer->keep_until(two);
  buffer.reset();
  EXPECT_EQ(device.allocator->stats().allocated, 1000u);
  two->open();
  device.allocator->trim();
  EXPECT_EQ(device.allocator->stats().allocated, 1000u);
  one->open();
  device.allocator->trim();
  EXPECT_EQ(device.allocator->stats().allocated, 0u);
  EXPECT_EQ(one->waits + two->waits, 0);
}

TEST(Buffer, FenceMayOwnABufferOfTheSameAllocator) {
  struct Owner : FakeFence {
    BufferRef buffer;
  };
  FakeDevice device;
  auto owner = std::make_shared<Owner>();
  owner->buffer = device.allocator->allocate(64);
  BufferRef buffer = device.allocator->allocate(1000);
  buffer->keep_until(owner);
  owner->open();
  owner.reset();
  buffer.reset();
  EXPECT_EQ(device.allocator->stats().allocated, 0u);
}

}  // namespace
}  // namespace anymps
