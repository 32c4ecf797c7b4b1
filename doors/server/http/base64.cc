// SPDX-License-Identifier: Apache-2.0
#include "server/http/base64.h"

#include <cstdint>

#include "serving/error.h"

namespace anymps::server::http {
namespace {

int value_of(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  return c == '+' ? 62 : c == '/' ? 63 : -1;
}

}  // namespace

std::string decode_base64(std::string_view text) {
  std::string out;
  out.reserve(text.size() / 4 * 3 + 3);
  uint32_t bits = 0;
  int count = 0;  // of bits that are not written yet
  bool ended = false;
  for (const char c : text) {
    if (c == '\n' || c == '\r' || c == ' ' || c == '\t') continue;
    if (c == '=') {
      ended = true;
      continue;
    }
    const int value = value_of(c);
    if (value < 0 || ended)
      throw serving::Error(serving::Code::kInvalidArgument,
                           "a file of the load request is not base64");
    bits = (bits << 6 | static_cast<uint32_t>(value)) & 0xFFFF;
    count += 6;
    if (count < 8) continue;
    count -= 8;
    out.push_back(static_cast<char>(bits >> count & 0xFF));
  }
  return out;
}

}  // namespace anymps::server::http
