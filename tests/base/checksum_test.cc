// SPDX-License-Identifier: Apache-2.0
#include "base/checksum.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

namespace anymps {
namespace {

std::string pattern(size_t bytes) {
  std::string text(bytes, '\0');
  for (size_t i = 0; i < bytes; ++i) text[i] = static_cast<char>(i * 7 + 1);
  return text;
}

TEST(Checksum, DoesNotDependOnHowBytesArrive) {
  const std::string text = pattern(203);
  const uint64_t whole = checksum(text.data(), text.size());
  for (size_t cut = 0; cut <= text.size(); ++cut)
    EXPECT_EQ(Checksum().add(text.data(), cut).add(text.data() + cut, text.size() - cut).value(),
              whole);
  Checksum single;
  for (char c : text) single.add(&c, 1);
  EXPECT_EQ(single.value(), whole);
}

TEST(Checksum, EveryBitCounts) {
  std::string text = pattern(75);
  std::set<uint64_t> seen{checksum(text.data(), text.size())};
  for (size_t bit = 0; bit < text.size() * 8; ++bit) {
    text[bit / 8] = static_cast<char>(text[bit / 8] ^ (1 << bit % 8));
    EXPECT_TRUE(seen.insert(checksum(text.data(), text.size())).second) << "bit " << bit;
    text[bit / 8] = static_cast<char>(text[bit / 8] ^ (1 << bit % 8));
  }
}

TEST(Checksum, LengthCounts) {
  const std::string zeros(100, '\0');
  std::set<uint64_t> seen;
  for (size_t bytes = 0; bytes <= zeros.size(); ++bytes)
    EXPECT_TRUE(seen.insert(checksum(zeros.data(), bytes)).second) << bytes;
}

// The value is part of the .mps format.
TEST(Checksum, IsTheSameForEver) {
  const std::string text = pattern(75);
  EXPECT_EQ(checksum(text.data(), text.size()), 0xb6d347765223b2fau);
  EXPECT_EQ(checksum("", 0), 0x94233f65be210f7eu);
}

}  // namespace
}  // namespace anymps
