// SPDX-License-Identifier: Apache-2.0
#include "base/mapped_file.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <numeric>

#include "base/error.h"

namespace anymps {
namespace {

namespace fs = std::filesystem;

class MappedFileTest : public ::testing::Test {
 protected:
  MappedFileTest()
      : path_(
            (fs::temp_directory_path() / fmt::format("mapped_file_test_{}", ::getpid())).string()) {
  }
  ~MappedFileTest() override { fs::remove(path_); }

  std::shared_ptr<const MappedFile> map(size_t bytes) {
    text_.resize(bytes);
    for (size_t i = 0; i < bytes; ++i) text_[i] = static_cast<char>(i * 7 + 1);
    fs::remove(path_);
    std::ofstream(path_, std::ios::binary) << text_;
    return MappedFile::open(path_, "test");
  }
  static int sum(std::string_view bytes) { return std::accumulate(bytes.begin(), bytes.end(), 0); }

  std::string path_, text_;
  const size_t page_ = static_cast<size_t>(sysconf(_SC_PAGESIZE));
};

TEST_F(MappedFileTest, HoldsWhatTheFileHas) {
  for (const size_t bytes : {size_t{0}, size_t{1}, page_ - 1, page_, page_ + 1, 5 * page_ + 17}) {
    const auto file = map(bytes);
    EXPECT_EQ(file->bytes(), text_);
    EXPECT_TRUE(file->whole());
    EXPECT_EQ(MappedFile::holds(file->bytes().data()), bytes > 0);
    EXPECT_FALSE(MappedFile::holds(&bytes));
  }
}

// Wherever it is cut: what was read is either the file as it was, or the file says that it is not.
TEST_F(MappedFileTest, ATruncatedFileSaysSo) {
  for (const size_t bytes : {100 + 3 * page_, 4 * page_, size_t{700}})
    for (const size_t cut : {size_t{0}, size_t{1}, page_ / 2, page_, page_ + 1, 2 * page_ + 50,
                             3 * page_, 3 * page_ + 1, 4 * page_ - 1}) {
      if (cut >= bytes) continue;
      const auto file = map(bytes);
      fs::resize_file(path_, cut);
      const bool same = file->bytes() == text_;
      EXPECT_EQ(same, file->whole()) << bytes << " cut to " << cut;
      // Only what lies behind the place is gone, and who did not read that far is told too.
      const auto other = map(bytes);
      fs::resize_file(path_, cut);
      EXPECT_EQ(other->whole(), same) << bytes << " cut to " << cut;
    }
}

TEST_F(MappedFileTest, StaysTruncatedWhenTheFileGrowsAgain) {
  const auto file = map(5 * page_);
  fs::resize_file(path_, 10);
  EXPECT_FALSE(file->whole());
  fs::resize_file(path_, 5 * page_);
  EXPECT_FALSE(file->whole());
  try {
    check_whole({file});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kIo);
    EXPECT_NE(std::string(error.what()).find(path_ + ": was truncated while in use"),
              std::string::npos);
  }
  EXPECT_TRUE(MappedFile::open(path_, "test")->whole());
}

TEST_F(MappedFileTest, ReplacingAndRemovingDoNoHarm) {
  const auto file = map(3 * page_);
  fs::remove(path_);
  std::ofstream(path_) << "another";
  EXPECT_EQ(file->bytes(), text_);
  EXPECT_TRUE(file->whole());
}

TEST_F(MappedFileTest, ErrorsOfWhoReadsAreThoseOfTheFile) {
  const auto file = map(3 * page_);
  fs::resize_file(path_, 0);
  EXPECT_THROW(reading({file}, [] {}), Error);
  try {
    reading({file}, [] { throw std::runtime_error("zeros"); });
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("truncated"), std::string::npos);
  }
}

TEST_F(MappedFileTest, OpenedFilesOfAThread) {
  const OpenedFiles outer;
  std::shared_ptr<const MappedFile> kept;
  {
    const OpenedFiles inner;
    kept = map(10);
    map(20);
    EXPECT_EQ(inner.all().size(), 2u);
    ASSERT_EQ(inner.in_use().size(), 1u);
    EXPECT_EQ(inner.in_use()[0], kept);
  }
  EXPECT_TRUE(outer.all().empty());
}

// Faults of others end the process as they did before, and reach a handler that was there before.
using MappedFileDeathTest = MappedFileTest;
constexpr int kSurvived = 77;

TEST_F(MappedFileDeathTest, OtherFaultsAreNotOurs) {
  const auto fault = [&](bool with_handler) {
    if (with_handler) ::signal(SIGBUS, [](int) { ::_exit(42); });
    const auto file = map(page_);
    const std::string other = path_ + ".other";
    std::ofstream(other) << text_;
    std::FILE* opened = std::fopen(other.c_str(), "r");
    const void* mapped = ::mmap(nullptr, page_, PROT_READ, MAP_PRIVATE, ::fileno(opened), 0);
    fs::resize_file(other, 0);
    fs::remove(other);
    ::_exit(sum({static_cast<const char*>(mapped), page_}) == 0 ? kSurvived : 0);
  };
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto ended = [](int status) {  // by the signal, or by a sanitizer's handler for it
    return !WIFEXITED(status) || (WEXITSTATUS(status) != kSurvived && WEXITSTATUS(status) != 0);
  };
  EXPECT_EXIT(fault(false), ended, "");
  EXPECT_EXIT(fault(true), ::testing::ExitedWithCode(42), "");
}

}  // namespace
}  // namespace anymps
