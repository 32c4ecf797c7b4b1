// SPDX-License-Identifier: Apache-2.0
#include "server/memory/shared_memory.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <numeric>

#include "anymps/anymps.hpp"
#include "server/memory/cut_memory.h"

namespace anymps::server {
namespace {

// A POSIX shared memory object of 8192 bytes that goes with the test.
class SharedMemoryTest : public testing::Test {
 protected:
  SharedMemoryTest() : key_("/anymps_test_" + std::to_string(getpid())) {
    file_ = shm_open(key_.c_str(), O_CREAT | O_RDWR, 0600);
    EXPECT_EQ(ftruncate(file_, kBytes), 0);
    data_ = static_cast<char*>(mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0));
  }
  ~SharedMemoryTest() override {
    munmap(data_, kBytes);
    close(file_);
    shm_unlink(key_.c_str());
  }
  template <typename Fn>
  std::pair<Code, std::string> error_of(Fn&& fn) {
    try {
      fn();
    } catch (const Error& error) {
      return {error.code(), error.what()};
    }
    return {Code::kUnknown, "no error"};
  }

  static constexpr uint64_t kBytes = 8192;
  std::string key_;
  int file_;
  char* data_;
  SharedMemory memory_;
};

TEST_F(SharedMemoryTest, BuffersAreTheClientsMemory) {
  memory_.add("r", key_, 0, kBytes);
  std::memcpy(data_ + 100, "abc", 3);
  const Buffer buffer = memory_.buffer("r", 100, 3);
  EXPECT_EQ(std::memcmp(buffer.data, "abc", 3), 0);
  buffer.data[0] = std::byte{'x'};
  EXPECT_EQ(data_[100], 'x');
}

TEST_F(SharedMemoryTest, ARegionMayBeginAnywhere) {
  memory_.add("r", key_, 4100, 8);
  std::memcpy(data_ + 4104, "abcd", 4);
  EXPECT_EQ(std::memcmp(memory_.buffer("r", 4, 4).data, "abcd", 4), 0);
}

TEST_F(SharedMemoryTest, ABufferOutlivesItsRegion) {
  memory_.add("r", key_, 0, kBytes);
  const Buffer buffer = memory_.buffer("r", 0, 16);
  memory_.remove("r");
  buffer.data[3] = std::byte{'q'};
  EXPECT_EQ(data_[3], 'q');
  EXPECT_EQ(error_of([&] { memory_.buffer("r", 0, 16); }).first, Code::kNotFound);
}

TEST_F(SharedMemoryTest, NamesAreTakenOnceAndKeysOften) {
  memory_.add("r", key_, 0, kBytes);
  EXPECT_EQ(
      error_of([&] { memory_.add("r", key_, 0, 8); }),
      std::pair(Code::kAlreadyExists, std::string("shared memory region 'r' already in manager")));
  memory_.add("s", key_.substr(1), 0, 8);  // without the slash
  EXPECT_EQ(memory_.status("").regions_size(), 2);
  memory_.remove_all();
  EXPECT_EQ(memory_.status("").regions_size(), 0);
}

TEST_F(SharedMemoryTest, KeysThatAreNotNamesOfObjects) {
  for (const std::string key :
       {"", "/", "/..", "..", ".", "/../etc/passwd", "/a/b", "/nothing_here"})
    EXPECT_EQ(error_of([&] { memory_.add("r", key, 0, 8); }),
              std::pair(Code::kInternal, "Unable to open shared memory region: '" + key + "'"));
  EXPECT_EQ(error_of([&] { memory_.add("r", key_ + std::string("\0x", 2), 0, 8); }).first,
            Code::kInternal);
  EXPECT_EQ(error_of([&] { memory_.add("r", std::string(5000, 'a'), 0, 8); }).first,
            Code::kInternal);
}

TEST_F(SharedMemoryTest, PartsThatDoNotLieWithin) {
  const auto refused = [&](uint64_t offset, uint64_t bytes) {
    return error_of([&] { memory_.add("x", key_, offset, bytes); }).first;
  };
  EXPECT_EQ(refused(0, kBytes + 1), Code::kInvalidArgument);
  EXPECT_EQ(refused(1, kBytes), Code::kInvalidArgument);
  EXPECT_EQ(refused(UINT64_MAX - 7, 16), Code::kInvalidArgument);
  EXPECT_EQ(refused(16, UINT64_MAX - 7), Code::kInvalidArgument);
  EXPECT_EQ(refused(0, 0), Code::kInvalidArgument);

  memory_.add("r", key_, 0, 64);
  const auto error = [&](uint64_t offset, uint64_t bytes) {
    return error_of([&] { memory_.buffer("r", offset, bytes); }).second;
  };
  const std::string whole = "Invalid offset + byte size for shared memory region: 'r'";
  EXPECT_EQ(error(0, 64), "no error");
  EXPECT_EQ(error(56, 16), whole);
  EXPECT_EQ(error(0, 0), whole);
  EXPECT_EQ(error(8, UINT64_MAX), whole);
  EXPECT_EQ(error(64, 1), "Invalid offset for shared memory region: 'r'");
  EXPECT_EQ(error(UINT64_MAX, 1), "Invalid offset for shared memory region: 'r'");
}

TEST_F(SharedMemoryTest, AnObjectThatWasCutIsNotTouched) {
  memory_.add("r", key_, 0, kBytes);
  ASSERT_EQ(ftruncate(file_, 16), 0);
  EXPECT_EQ(error_of([&] { memory_.buffer("r", 0, 16); }).first, Code::kInvalidArgument);
}

TEST_F(SharedMemoryTest, WhatIsCutWhileItIsUsedIsZero) {
  memory_.add("r", key_, 0, kBytes);
  memory_.add("s", key_, 0, 16);
  std::memset(data_, 1, kBytes);
  const Buffer first = memory_.buffer("r", 0, 16), second = memory_.buffer("r", 5000, 8);
  ASSERT_EQ(ftruncate(file_, 4096), 0);
  EXPECT_FALSE(was_cut(second.data));
  EXPECT_EQ(second.data[0], std::byte{0});
  second.data[1] = std::byte{2};
  EXPECT_EQ(second.data[1], std::byte{2});
  EXPECT_EQ(first.data[0], std::byte{1});
  EXPECT_TRUE(was_cut(first.data));  // all of the region: who knows what was read when
  EXPECT_FALSE(was_cut(memory_.buffer("s", 0, 16).data));
  EXPECT_FALSE(was_cut(&first));
  // Pages that come back are not those that are mapped here.
  ASSERT_EQ(ftruncate(file_, kBytes), 0);
  EXPECT_EQ(error_of([&] { memory_.buffer("r", 0, 16); }).first, Code::kInvalidArgument);
  memory_.remove("r");
  memory_.add("r", key_, 0, kBytes);
  EXPECT_FALSE(was_cut(memory_.buffer("r", 0, 16).data));
}

// The engine watches the files of models in the same way: neither handler takes the other's place.
TEST_F(SharedMemoryTest, AModelWhoseFileIsTruncatedAndARegionThatIsCut) {
  const std::string path =
      testing::TempDir() + "truncated_model_" + std::to_string(getpid()) + ".mps";
  constexpr int64_t kCount = 100'000;
  {
    amps::Graph graph;
    std::vector<float> numbers(kCount);
    std::iota(numbers.begin(), numbers.end(), 1.0f);
    const auto x = graph.input("x", amps::DType::f32, {kCount});
    graph.outputs({graph.add(x, graph.constant(amps::DType::f32, {kCount}, numbers.data()))});
    graph.save(path);
  }
  const amps::Device device = amps::Device::get("cpu");
  const amps::Executable model = device.load(path);
  const std::vector<float> zeros(kCount);
  const amps::Tensor feed = device.from_host(amps::DType::f32, {kCount}, zeros.data());
  EXPECT_EQ(model.run({feed})[0].to_vector<float>()[kCount - 1], kCount);
  memory_.add("r", key_, 0, kBytes);
  const Buffer buffer = memory_.buffer("r", 5000, 8);
  ASSERT_EQ(truncate(path.c_str(), 5000), 0);
  EXPECT_THROW(model.run({feed}), amps::Error);
  ASSERT_EQ(ftruncate(file_, 4096), 0);
  EXPECT_EQ(buffer.data[0], std::byte{0});
  EXPECT_TRUE(was_cut(buffer.data));
  EXPECT_THROW(model.run({feed}), amps::Error);
  unlink(path.c_str());
}

// Bus errors elsewhere end the process as ever.
TEST_F(SharedMemoryTest, OtherMemoryIsNotWatched) {
  memory_.add("r", key_, 0, kBytes);
  ASSERT_EQ(ftruncate(file_, 0), 0);
  EXPECT_DEATH(*static_cast<volatile char*>(data_) = 1, "");
  EXPECT_DEATH(raise(SIGBUS), "");
}

TEST_F(SharedMemoryTest, StatusTellsWhatWasRegistered) {
  memory_.add("r", key_, 8, 32);
  const auto status = memory_.status("r").regions().at("r");
  EXPECT_EQ(status.key(), key_);
  EXPECT_EQ(status.offset(), 8U);
  EXPECT_EQ(status.byte_size(), 32U);
  EXPECT_EQ(
      error_of([&] { memory_.status("q"); }),
      std::pair(Code::kNotFound, std::string("Unable to find system shared memory region: 'q'")));
}

}  // namespace
}  // namespace anymps::server
