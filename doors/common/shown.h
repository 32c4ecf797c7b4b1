// SPDX-License-Identifier: Apache-2.0
// Foreign text (names from files, arguments) as one line that a terminal shows and does not obey.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace anymps::common {

// The bytes of the UTF-8 character at the front and its code point; 0: they are not UTF-8.
size_t character_bytes(std::string_view text, uint32_t& point);
constexpr bool is_control(uint32_t point) {  // C0, DEL and C1: what terminals obey
  return point < 0x20 || (point >= 0x7f && point < 0xa0);
}

// Control characters and bytes that are not UTF-8 as "\x1b"; the rest as it is.
std::string shown(std::string_view text);

}  // namespace anymps::common
