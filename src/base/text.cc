// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <vector>

namespace anymps {

namespace {

constexpr char32_t kReplacement = 0xfffd;
constexpr std::string_view kReplacementBytes = "\xef\xbf\xbd";

// What terminals obey: C0, DEL and C1.
bool is_control(char32_t code) { return code < 0x20 || (code >= 0x7f && code < 0xa0); }

// The code point at `at`, which moves past it; a broken sequence gives the replacement character.
char32_t decode(std::string_view text, size_t& at) {
  const auto lead = static_cast<unsigned char>(text[at++]);
  if (lead < 0x80) return lead;
  const int more = lead >= 0xf0 ? 3 : lead >= 0xe0 ? 2 : 1;
  if (lead < 0xc2 || lead > 0xf4) return kReplacement;
  char32_t code = lead & (0x3f >> more);
  for (int i = 0; i < more; ++i) {
    if (at >= text.size() || (static_cast<unsigned char>(text[at]) & 0xc0) != 0x80)
      return kReplacement;
    code = (code << 6) | (static_cast<unsigned char>(text[at++]) & 0x3f);
  }
  constexpr std::array<char32_t, 4> kLeast = {0, 0x80, 0x800, 0x10000};
  const bool surrogate = code >= 0xd800 && code <= 0xdfff;
  return code < kLeast[more] || surrogate || code > 0x10ffff ? kReplacement : code;
}

void encode(char32_t code, std::string& out) {
  auto put = [&](char32_t byte) { out += static_cast<char>(byte); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xc0 | (code >> 6));
    put(0x80 | (code & 0x3f));
  } else if (code < 0x10000) {
    put(0xe0 | (code >> 12));
    put(0x80 | ((code >> 6) & 0x3f));
    put(0x80 | (code & 0x3f));
  } else {
    put(0xf0 | (code >> 18));
    put(0x80 | ((code >> 12) & 0x3f));
    put(0x80 | ((code >> 6) & 0x3f));
    put(0x80 | (code & 0x3f));
  }
}

}  // namespace

std::string shown(std::string_view text) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const size_t begin = at;
    const char32_t code = decode(text, at);
    const std::string_view bytes = text.substr(begin, at - begin);
    if (is_control(code) || (code == kReplacement && bytes != kReplacementBytes))
      for (const char byte : bytes) out += fmt::format("\\x{:02x}", static_cast<uint8_t>(byte));
    else
      out += bytes;
  }
  return out;
}

std::string json_string(std::string_view text) {
  std::string out = "\"";
  for (size_t at = 0; at < text.size();) {
    const char32_t code = decode(text, at);
    if (code == '"' || code == '\\') out += '\\';
    if (is_control(code))
      out += fmt::format("\\u{:04x}", static_cast<uint32_t>(code));
    else
      encode(code, out);
  }
  return out + "\"";
}

std::string xml_text(std::string_view text) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const char32_t code = decode(text, at);
    switch (code) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&apos;";
        break;
      case '\n':
        out += '\n';
        break;
      default:
        encode(code < 0x20 || code == 0xfffe || code == 0xffff ? kReplacement : code, out);
    }
  }
  return out;
}

std::string shortened(std::string_view text, size_t most) {
  std::vector<char32_t> codes;
  for (size_t at = 0; at < text.size();) codes.push_back(decode(text, at));
  if (codes.size() > most && most > 0) {
    const size_t head = (most - 1) / 2, tail = most - 1 - head;
    codes.erase(codes.begin() + static_cast<int64_t>(head),
                codes.end() - static_cast<int64_t>(tail));
    codes.insert(codes.begin() + static_cast<int64_t>(head), U'…');
  }
  std::string out;
  for (char32_t code : codes) encode(code, out);
  return out;
}

std::string human_bytes(size_t bytes) {
  if (bytes < 1024) return fmt::format("{} B", bytes);
  double value = static_cast<double>(bytes);
  size_t unit = 0;
  constexpr std::array<const char*, 5> kUnits = {"B", "KB", "MB", "GB", "TB"};
  for (; value >= 1024 && unit + 1 < kUnits.size(); ++unit) value /= 1024;
  return fmt::format("{:.1f} {}", value, kUnits[unit]);
}

}  // namespace anymps
