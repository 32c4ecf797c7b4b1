// SPDX-License-Identifier: Apache-2.0
#include "memory/system_memory.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>

namespace anymps {
namespace {

namespace fs = std::filesystem;

class Groups : public ::testing::Test {
 protected:
  Groups() : root_(fs::path(::testing::TempDir()) / "anymps_groups") { fs::remove_all(root_); }
  ~Groups() override { fs::remove_all(root_); }

  void bound(const std::string& path, const std::string& text) {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text << "\n";
  }
  size_t memory(const std::string& groups) { return container_memory(groups, root_.string()); }

  fs::path root_;
};

TEST_F(Groups, TheLeastBoundOnTheWayUpHolds) {
  bound("memory.max", "9000");
  bound("pod/memory.max", "5000");
  bound("pod/one/memory.max", "max");
  bound("pod/two/memory.max", "3000");
  EXPECT_EQ(memory("0::/pod/one\n"), 5000u);
  EXPECT_EQ(memory("0::/pod/two\n"), 3000u);
  EXPECT_EQ(memory("0::/pod/two/inner/\n"), 3000u);
  EXPECT_EQ(memory("0::/elsewhere\n"), 9000u);
  EXPECT_EQ(memory("0::/\n"), 9000u);
}

TEST_F(Groups, OlderKernelsHaveATreeForEachController) {
  bound("memory/docker/memory.limit_in_bytes", "7000");
  EXPECT_EQ(memory("3:cpu,cpuacct:/docker\n2:memory:/docker\n0::/docker\n"), 7000u);
  EXPECT_EQ(memory("3:cpu,cpuacct:/docker\n"), SIZE_MAX);
}

TEST_F(Groups, WhatMakesNoSenseBoundsNothing) {
  bound("a/memory.max", "many");
  for (const char* groups : {"", "\n", ":", "::", "0::/a\n", "nonsense\n", "0::\n", "0::a"})
    EXPECT_EQ(memory(groups), SIZE_MAX) << groups;
}

TEST(SystemMemory, IsThere) {
  EXPECT_GT(system_memory(), size_t{64} << 20);
  EXPECT_LT(system_memory(), size_t{1} << 50);
}

// A virtual machine's balloon, told by its kind and its features, bit by bit.
TEST(Host, TakesMemoryBackWhereABalloonReportsFreePages) {
  const fs::path folder = fs::path(::testing::TempDir()) / "anymps_virtio";
  fs::remove_all(folder);
  EXPECT_FALSE(host_takes_memory_back(folder.string()));
  const auto device = [&](const char* name, const char* kind, const char* features) {
    fs::create_directories(folder / name);
    std::ofstream(folder / name / "device") << kind << "\n";
    std::ofstream(folder / name / "features") << features << "\n";
  };
  device("virtio0", "0x0002", "0110010100000000");
  device("virtio1", "0x0005", "0110000000000000");
  device("virtio2", "0x0005", "011");
  fs::create_directories(folder / "virtio3");
  EXPECT_FALSE(host_takes_memory_back(folder.string()));
  device("virtio1", "0x0005", "0110010000000000");
  EXPECT_TRUE(host_takes_memory_back(folder.string()));
  fs::remove_all(folder);
}

}  // namespace
}  // namespace anymps
