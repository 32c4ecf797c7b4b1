// SPDX-License-Identifier: Apache-2.0
// Files of a load request come as base64.
#pragma once

#include <string>
#include <string_view>

namespace anymps::server::http {

// Throws Error (kInvalidArgument) for characters that are not base64; white space is skipped, and
// the signs that fill the last group may be missing.
std::string decode_base64(std::string_view text);

}  // namespace anymps::server::http
