// SPDX-License-Identifier: Apache-2.0
#include "base/output_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/error.h"

namespace anymps {
namespace {

namespace fs = std::filesystem;

class OutputFileTest : public ::testing::Test {
 protected:
  OutputFileTest() {
    folder_ = fs::temp_directory_path() / fmt::format("output_file_test_{}", ::getpid());
    fs::remove_all(folder_);
    fs::create_directory(folder_);
  }
  ~OutputFileTest() override { fs::remove_all(folder_); }

  std::string at(const std::string& name) const { return (folder_ / name).string(); }
  static std::string content(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  static void put(const std::string& path, const std::string& text) {
    OutputFile file(path, "test");
    file.write(text.data(), text.size());
    file.keep();
  }
  static mode_t mode(const std::string& path) {
    struct stat info {};
    EXPECT_EQ(::stat(path.c_str(), &info), 0);
    return info.st_mode & 0777;
  }
  static std::string problem(const std::string& path) {
    try {
      put(path, "new");
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::kIo);
      return error.what();
    }
    return "";
  }
  size_t files() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(folder_), {}));
  }

  fs::path folder_;
};

TEST_F(OutputFileTest, WhoHasTheOldOneOpenKeepsIt) {
  put(at("f"), "old");
  std::ifstream old(at("f"));
  put(at("f"), "new and longer");
  std::string text;
  std::getline(old, text);
  EXPECT_EQ(text, "old");
  EXPECT_EQ(content(at("f")), "new and longer");
  EXPECT_EQ(files(), 1u);
}

TEST_F(OutputFileTest, WhatIsNotKeptIsGone) {
  put(at("f"), "old");
  {
    OutputFile file(at("f"), "test");
    file.write("half", 4);
  }
  EXPECT_EQ(content(at("f")), "old");
  EXPECT_EQ(files(), 1u);
}

TEST_F(OutputFileTest, PartsSeeksAndSizes) {
  const std::string large(300'000, 'l');
  OutputFile file(at("f"), "test");
  file.write("....", 4);
  file.write(large.data(), large.size());
  EXPECT_EQ(file.at(), large.size() + 4);
  for (int i = 0; i < 70'000; ++i) file.write("s", 1);
  file.seek(1);
  file.write("head", 2);
  file.keep();
  EXPECT_EQ(content(at("f")), ".he." + large + std::string(70'000, 's'));
}

TEST_F(OutputFileTest, ModesAreKeptAndNewOnesFollowTheUmask) {
  const mode_t before = ::umask(027);
  put(at("new"), "x");
  put(at("old"), "x");
  ::chmod(at("old").c_str(), 0604);
  put(at("old"), "y");
  ::umask(before);
  EXPECT_EQ(mode(at("new")), 0640u);
  EXPECT_EQ(mode(at("old")), 0604u);
}

TEST_F(OutputFileTest, LinksAreFollowed) {
  fs::create_directory(folder_ / "real");
  put(at("real/f"), "old");
  fs::create_symlink("real/f", folder_ / "link");
  fs::create_symlink("link", folder_ / "far");
  fs::create_symlink("real/none", folder_ / "dangling");
  put(at("far"), "new");
  put(at("dangling"), "made");
  EXPECT_TRUE(fs::is_symlink(folder_ / "link") && fs::is_symlink(folder_ / "far"));
  EXPECT_TRUE(fs::is_symlink(folder_ / "dangling"));
  EXPECT_EQ(content(at("real/f")), "new");
  EXPECT_EQ(content(at("real/none")), "made");
}

TEST_F(OutputFileTest, WhatIsNoFileIsWrittenWhereItIs) {
  put("/dev/null", "x");
  struct stat info {};
  ASSERT_EQ(::stat("/dev/null", &info), 0);
  EXPECT_TRUE(S_ISCHR(info.st_mode));
  EXPECT_NE(problem("/dev/full").find("No space left"), std::string::npos);

  ASSERT_EQ(::mkfifo(at("fifo").c_str(), 0600), 0);
  EXPECT_NE(problem(at("fifo")).find("No such device"), std::string::npos) << "nobody reads";
  const int reader = ::open(at("fifo").c_str(), O_RDONLY | O_NONBLOCK);
  put(at("fifo"), "through");
  char read[16] = {};
  EXPECT_EQ(::read(reader, read, sizeof read), 7);
  EXPECT_STREQ(read, "through");
  ::close(reader);

  const int open = ::open(at("f").c_str(), O_WRONLY | O_CREAT, 0600);
  put(fmt::format("/proc/self/fd/{}", open), "to what is open");
  ASSERT_EQ(::fstat(open, &info), 0);
  ::close(open);
  EXPECT_EQ(content(at("f")), "to what is open");
  EXPECT_EQ(info.st_nlink, 1u);
}

TEST_F(OutputFileTest, ErrorsNameTheFileAndLeaveNothing) {
  EXPECT_NE(problem(at("no/such/f")).find("[test] " + at("no/such/f")), std::string::npos);
  EXPECT_NE(problem(at("")).find("directory"), std::string::npos);
  EXPECT_NE(problem(std::string("a\0b", 3)), "");
  fs::create_symlink("ring", folder_ / "ring");
  EXPECT_NE(problem(at("ring")), "");
  EXPECT_EQ(problem(at(std::string(255, 'n'))), "");
  EXPECT_NE(problem(at(std::string(256, 'n'))).find("too long"), std::string::npos);
  EXPECT_EQ(files(), 2u);
}

// The disk is full after some bytes: here the process may write no larger file.
TEST_F(OutputFileTest, AFullDiskLeavesTheOldFile) {
  put(at("f"), "old");
  struct rlimit before {};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = ::signal(SIGXFSZ, SIG_IGN);
  struct rlimit small = before;
  small.rlim_cur = 100'000;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  std::string told;
  try {
    put(at("f"), std::string(150'000, 'x'));
  } catch (const Error& error) {
    told = error.what();
  }
  ::setrlimit(RLIMIT_FSIZE, &before);
  ::signal(SIGXFSZ, handler);
  EXPECT_NE(told.find("cannot be written"), std::string::npos) << told;
  EXPECT_EQ(content(at("f")), "old");
  EXPECT_EQ(files(), 1u);
}

}  // namespace
}  // namespace anymps
