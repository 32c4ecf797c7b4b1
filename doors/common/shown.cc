// SPDX-License-Identifier: Apache-2.0
#include "common/shown.h"

#include <fmt/format.h>

namespace anymps::common {

size_t character_bytes(std::string_view text, uint32_t& point) {
  const auto lead = static_cast<unsigned char>(text[0]);
  const size_t more = lead < 0x80 ? 0 : lead < 0xe0 ? 1 : lead < 0xf0 ? 2 : 3;
  if ((lead >= 0x80 && lead < 0xc2) || lead > 0xf4 || text.size() <= more) return 0;
  point = more ? lead & (0x3fu >> more) : lead;
  for (size_t i = 1; i <= more; ++i) {
    const auto next = static_cast<unsigned char>(text[i]);
    if ((next & 0xc0) != 0x80) return 0;
    point = point << 6 | (next & 0x3f);
  }
  constexpr uint32_t kLeast[] = {0, 0x80, 0x800, 0x10000};
  const bool surrogate = point >= 0xd800 && point < 0xe000;
  return point < kLeast[more] || point > 0x10ffff || surrogate ? 0 : more + 1;
}

std::string shown(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    uint32_t point = 0;
    const size_t bytes = character_bytes(text, point);
    const std::string_view character = text.substr(0, bytes ? bytes : 1);
    if (bytes && !is_control(point))
      out += character;
    else
      for (const char byte : character)
        out += fmt::format("\\x{:02x}", static_cast<unsigned char>(byte));
    text.remove_prefix(character.size());
  }
  return out;
}

}  // namespace anymps::common
