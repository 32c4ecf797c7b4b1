// SPDX-License-Identifier: Apache-2.0
// Foreign text (names from files) made safe for terminals, JSON and XML: valid UTF-8, no control
// characters.
#pragma once

#include <string>
#include <string_view>

namespace anymps {

// One line for people: control characters and bytes that are not UTF-8 as "\x1b".
std::string shown(std::string_view text);
std::string json_string(std::string_view text);  // with its quotes
std::string xml_text(std::string_view text);     // &, <, >, " and ' escaped
// At most `most` characters, the middle left out: "encoder/…/dense".
std::string shortened(std::string_view text, size_t most);
std::string human_bytes(size_t bytes);  // "37.6 KB"

}  // namespace anymps
