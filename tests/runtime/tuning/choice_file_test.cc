// SPDX-License-Identifier: Apache-2.0
// The file of measured choices: what is written is read, nothing else is, whatever somebody has put
// there; and where the file is.
#include "runtime/tuning/choice_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "base/checksum.h"
#include "base/error.h"
#include "support/temporary_folder.h"

namespace anymps {
namespace {

const std::string kIdentity = "anymps 0, test, 2 threads, a machine";
const Choices kSome = {{0, "gemm"}, {0x123456789abcdef0, "onednn/jit:avx2"}, {~uint64_t{0}, "a.b"}};

std::string refusal(const std::string& text, const std::string& identity = kIdentity) {
  std::string why;
  return choices_from_text(text, identity, why) ? "" : why;
}

// As the file would be if somebody wrote these lines and took care to make the checksum fit.
std::string forged(const std::string& lines) {
  const std::string body = "anymps kernel choices 1\n" + lines;
  return body + fmt::format("{:016x}\n", checksum(body.data(), body.size()));
}

TEST(ChoiceFile, ReadsWhatItWrites) {
  std::string why;
  EXPECT_EQ(choices_from_text(choices_to_text(kIdentity, kSome), kIdentity, why), kSome) << why;
  EXPECT_EQ(choices_from_text(choices_to_text(kIdentity, {}), kIdentity, why), Choices()) << why;
}

TEST(ChoiceFile, RefusesEachPartOfAFile) {
  const std::string text = choices_to_text(kIdentity, kSome);
  for (size_t length = 0; length < text.size(); ++length)
    EXPECT_NE(refusal(text.substr(0, length)), "") << length;
  EXPECT_NE(refusal(text + "\n"), "");
  EXPECT_NE(refusal(text + text), "");
}

TEST(ChoiceFile, RefusesEachByteThatChanged) {
  const std::string text = choices_to_text(kIdentity, kSome);
  for (size_t i = 0; i < text.size(); ++i)
    for (const int bit : {0, 3, 7}) {
      std::string changed = text;
      changed[i] = static_cast<char>(changed[i] ^ (1 << bit));
      EXPECT_NE(refusal(changed), "") << i << " " << bit;
    }
}

TEST(ChoiceFile, RefusesWhatOnlyTheChecksumFits) {
  const std::string head = kIdentity + "\n", key = "0123456789abcdef";
  EXPECT_EQ(refusal(forged(head + key + " gemm\n")), "");
  EXPECT_EQ(refusal(forged("another\n" + key + " gemm\n")), "it is of another machine or version");
  for (const std::string& line :
       {key + " ../gemm x", key + " ", key, key + "x gemm", key + " ge mm", key + " g\x01mm",
        key + " " + std::string(kMostChoiceName + 1, 'a'), std::string("0123 gemm"),
        std::string("0123456789abcdeg gemm"), std::string("-123456789abcdef gemm"), std::string()})
    EXPECT_EQ(refusal(forged(head + line + "\n")), "it is damaged") << line;
  EXPECT_NE(refusal(forged(head + key + " gemm")), "");
  EXPECT_NE(refusal(forged("")), "");
  EXPECT_NE(refusal(forged(kIdentity)), "");
  std::string lines = head;
  for (size_t i = 0; i <= kMostChoices; ++i) lines += fmt::format("{:016x} gemm\n", i);
  EXPECT_EQ(refusal(forged(lines)), "it is too long");
  EXPECT_EQ(refusal(std::string(kMostChoiceBytes + 1, 'a')), "it is too long");
}

class InAFolder : public ::testing::Test {
 protected:
  std::string add(const std::string& path, const Choices& choices) {
    std::string why;
    return add_choices(path, kIdentity, choices, why) ? "" : why;
  }
  std::optional<Choices> read(const std::string& path) {
    return read_choices(path, kIdentity, why_);
  }
  testing::TemporaryFolder folder_;
  std::string path_ = choice_path(folder_.path() + "/new/folders", kIdentity);
  std::string why_;
};

TEST_F(InAFolder, AddsToWhatIsThere) {
  EXPECT_EQ(read(path_), Choices());
  EXPECT_EQ(add(path_, {{1, "a"}, {2, "b"}}), "");
  EXPECT_EQ(add(path_, {{2, "c"}, {3, "d"}}), "");
  EXPECT_EQ(read(path_), (Choices{{1, "a"}, {2, "c"}, {3, "d"}}));
}

TEST_F(InAFolder, AFullFileTakesWhatIsNew) {
  Choices old, fresh;
  for (size_t i = 0; i < kMostChoices; ++i) old[i] = std::string(kMostChoiceName, 'o');
  for (size_t i = 0; i < kMostChoices; ++i) fresh[kMostChoices + 2 * i] = "new";
  EXPECT_EQ(add(path_, old), "");
  fresh.erase(fresh.begin(), std::next(fresh.begin(), 100));
  EXPECT_EQ(add(path_, fresh), "");
  const auto found = read(path_);
  ASSERT_TRUE(found) << why_;
  EXPECT_EQ(found->size(), kMostChoices);
  EXPECT_TRUE(std::includes(found->begin(), found->end(), fresh.begin(), fresh.end()));
}

TEST_F(InAFolder, WritesADamagedFileAnew) {
  EXPECT_EQ(add(path_, kSome), "");
  std::filesystem::resize_file(path_, 50);
  EXPECT_FALSE(read(path_));
  EXPECT_EQ(add(path_, {{7, "a"}}), "");
  EXPECT_EQ(read(path_), (Choices{{7, "a"}}));
}

TEST_F(InAFolder, NoFileIsWaitedForOrReplaced) {
  const std::string pipe = folder_.path() + "/pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  for (const std::string& path : {pipe, folder_.path()}) {
    EXPECT_FALSE(read(path));
    EXPECT_EQ(why_, "it is not a regular file");
    EXPECT_EQ(add(path, kSome), "it is not a regular file");
  }
  EXPECT_NE(add("/dev/null/choices.txt", kSome), "");
  EXPECT_EQ(read("/dev/null/choices.txt"), Choices());
}

TEST_F(InAFolder, SeveralMayWriteAtOnce) {
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 4; ++t)
    threads.emplace_back([this, t] {
      for (uint64_t i = 0; i < 25; ++i) EXPECT_EQ(add(path_, {{t * 100 + i, "a"}}), "");
    });
  for (std::thread& thread : threads) thread.join();
  const auto found = read(path_);
  ASSERT_TRUE(found) << why_;
  EXPECT_FALSE(found->empty());
  size_t files = 0;
  for ([[maybe_unused]] const auto& file :
       std::filesystem::directory_iterator(std::filesystem::path(path_).parent_path()))
    ++files;
  EXPECT_EQ(files, 1u);  // what was written aside is gone
}

class Folders : public ::testing::Test {
 protected:
  void SetUp() override { remember("ANYMPS_TUNE_CACHE", "XDG_CACHE_HOME", "HOME"); }
  void TearDown() override {
    for (const auto& [name, value] : before_) set(name, value ? value->c_str() : nullptr);
  }
  template <typename... Names>
  void remember(Names... names) {
    for (const char* name : {names...}) {
      const char* value = std::getenv(name);
      before_.emplace_back(name, value ? std::optional<std::string>(value) : std::nullopt);
      unsetenv(name);
    }
  }
  static void set(const char* name, const char* value) {
    if (value)
      setenv(name, value, 1);
    else
      unsetenv(name);
  }
  std::vector<std::pair<const char*, std::optional<std::string>>> before_;
};

TEST_F(Folders, ByTheUsualRules) {
  EXPECT_EQ(choice_folder(), "");
  EXPECT_EQ(choice_path("", kIdentity), "");
  set("HOME", "relative");
  EXPECT_EQ(choice_folder(), "");
  set("HOME", "/home/me");
  EXPECT_EQ(choice_folder(), "/home/me/.cache/anymps");
  set("XDG_CACHE_HOME", "relative");  // to be ignored, by the standard
  EXPECT_EQ(choice_folder(), "/home/me/.cache/anymps");
  set("XDG_CACHE_HOME", "/cache");
  EXPECT_EQ(choice_folder(), "/cache/anymps");
  set("ANYMPS_TUNE_CACHE", "here");
  EXPECT_EQ(choice_folder(), "here");
  EXPECT_NE(choice_path("here", kIdentity), choice_path("here", kIdentity + " "));
}

}  // namespace
}  // namespace anymps
