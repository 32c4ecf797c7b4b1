// SPDX-License-Identifier: Apache-2.0
// Appends JSON to a string, in the form that Triton's clients see: no white space, doubles with the
// fewest digits that read back the same, NaN and Infinity by name.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "server/core/request.h"

namespace anymps::server::http {

void append_json(std::string& out, std::string_view text);  // quoted; bytes >= 0x80 as they are
void append_json(std::string& out, double value);
void append_json(std::string& out, int64_t value);
void append_json(std::string& out, uint64_t value);
void append_json(std::string& out, const Parameter& value);

std::string error_json(std::string_view message);  // {"error":"..."}

}  // namespace anymps::server::http
