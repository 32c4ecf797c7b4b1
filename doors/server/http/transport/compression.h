// SPDX-License-Identifier: Apache-2.0
// gzip and deflate of bodies. What a body may inflate to is bounded.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "server/core/request.h"
#include "server/memory/held_bytes.h"

namespace anymps::server::http {

enum class Encoding { kIdentity, kDeflate, kGzip };

// Of Content-Encoding; nullopt: one that the server does not know.
std::optional<Encoding> parse_encoding(std::string_view header);
// The encoding that Accept-Encoding prefers among those that the server knows, by its weights.
Encoding preferred_encoding(std::string_view accept);
std::string_view encoding_name(Encoding encoding);

// Throws Error: kInvalidArgument if the body is not what it should be or becomes larger than
// `limit`, kUnavailable if there is no room for it now.
Buffer inflate_body(const Buffer& body, Encoding encoding, size_t limit, HeldBytes* held = nullptr);
Buffer deflate_body(std::span<const Buffer> pieces, Encoding encoding);

}  // namespace anymps::server::http
