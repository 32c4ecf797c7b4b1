// SPDX-License-Identifier: Apache-2.0
// Code points of UTF-8 text. Bytes that are not UTF-8 stand for themselves, so that no text is an
// error and nothing is lost on the way back.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace anymps {

inline constexpr char32_t kRawByte = 0x110000;  // + the byte: one that is not part of UTF-8

inline std::vector<char32_t> code_points(std::string_view text) {
  std::vector<char32_t> points;
  for (size_t i = 0; i < text.size();) {
    const auto first = static_cast<uint8_t>(text[i]);
    const int more = first < 0x80    ? 0
                     : first >= 0xf0 ? 3
                     : first >= 0xe0 ? 2
                     : first >= 0xc0 ? 1
                                     : -1;
    char32_t point = more > 0 ? first & (0x3f >> more) : first;
    bool valid = more >= 0 && i + static_cast<size_t>(more) < text.size();
    for (int k = 1; valid && k <= more; ++k) {
      const auto byte = static_cast<uint8_t>(text[i + static_cast<size_t>(k)]);
      valid = (byte & 0xc0) == 0x80;
      point = point << 6 | (byte & 0x3f);
    }
    static constexpr char32_t kLeast[] = {0, 0x80, 0x800, 0x10000};
    valid =
        valid && point >= kLeast[more] && point < 0x110000 && (point < 0xd800 || point > 0xdfff);
    points.push_back(valid ? point : kRawByte + first);
    i += valid ? static_cast<size_t>(more) + 1 : 1;
  }
  return points;
}

inline std::string utf8_of(const std::vector<char32_t>& points) {
  std::string text;
  for (const char32_t point : points) {
    if (point >= kRawByte) {
      text += static_cast<char>(point - kRawByte);
    } else if (point < 0x80) {
      text += static_cast<char>(point);
    } else if (point < 0x800) {
      text += static_cast<char>(0xc0 | point >> 6);
      text += static_cast<char>(0x80 | (point & 0x3f));
    } else if (point < 0x10000) {
      text += static_cast<char>(0xe0 | point >> 12);
      text += static_cast<char>(0x80 | (point >> 6 & 0x3f));
      text += static_cast<char>(0x80 | (point & 0x3f));
    } else {
      text += static_cast<char>(0xf0 | point >> 18);
      text += static_cast<char>(0x80 | (point >> 12 & 0x3f));
      text += static_cast<char>(0x80 | (point >> 6 & 0x3f));
      text += static_cast<char>(0x80 | (point & 0x3f));
    }
  }
  return text;
}

}  // namespace anymps
