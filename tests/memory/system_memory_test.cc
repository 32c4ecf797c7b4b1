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

}  // namespace
}  // namespace anymps
