// SPDX-License-Identifier: Apache-2.0
// Files of a load request come as base64.
#pragma once

#include <string>
#include <string_view>

namespace server::http {

// Throws Error (kInvalidArgument) for characters that are none of base64; white space is skipped.
std::string decode_base64(std::string_view text);

}  // namespace server::http
