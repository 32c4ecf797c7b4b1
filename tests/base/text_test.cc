// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"

#include <gtest/gtest.h>

namespace anymps {
namespace {

TEST(Text, ShownIsOneLineThatNoTerminalObeys) {
  EXPECT_EQ(shown("plain, ünï, 漢, 😀, \\x1b"), "plain, ünï, 漢, 😀, \\x1b");
  EXPECT_EQ(shown("\x1b[2J\n\t\r\x7f"), "\\x1b[2J\\x0a\\x09\\x0d\\x7f");
  EXPECT_EQ(shown(std::string("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(shown("\xc2\x9b"
                  "2J"),
            "\\xc2\\x9b2J");
  EXPECT_EQ(shown("\xff\xfe"), "\\xff\\xfe");
  EXPECT_EQ(shown("\xe6\xbc"), "\\xe6\\xbc");                               // cut off
  EXPECT_EQ(shown("\xc0\xaf \xed\xa0\x80"), "\\xc0\\xaf \\xed\\xa0\\x80");  // overlong, surrogate
  EXPECT_EQ(shown("\xef\xbf\xbd"), "\xef\xbf\xbd");  // the replacement character itself
}

TEST(Text, JsonHasNoControlCharacters) {
  EXPECT_EQ(json_string("a\"\\\n\x1b\x7f\xc2\x9b"), "\"a\\\"\\\\\\u000a\\u001b\\u007f\\u009b\"");
  EXPECT_EQ(json_string("\xff"), "\"\xef\xbf\xbd\"");
}

}  // namespace
}  // namespace anymps
