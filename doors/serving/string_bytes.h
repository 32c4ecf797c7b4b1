// SPDX-License-Identifier: Apache-2.0
// Strings as the protocol has them: 4 bytes of length, then the bytes, one string after the other.
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

namespace anymps::serving {

// The caller has made sure that the length fits.
inline void append_string(std::string& bytes, std::string_view text) {
  const auto length = static_cast<uint32_t>(text.size());
  bytes.append(reinterpret_cast<const char*>(&length), sizeof length).append(text);
}

// Takes the first string off; nullopt: the bytes end before it does.
inline std::optional<std::string_view> take_string(std::string_view& bytes) {
  uint32_t length = 0;
  if (bytes.size() < sizeof length) return std::nullopt;
  std::memcpy(&length, bytes.data(), sizeof length);
  if (bytes.size() - sizeof length < length) return std::nullopt;
  const std::string_view text = bytes.substr(sizeof length, length);
  bytes.remove_prefix(sizeof length + length);
  return text;
}

}  // namespace anymps::serving
