// SPDX-License-Identifier: Apache-2.0
// Strings as they travel: each has 4 bytes of length before it, little-endian.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "serving/model.h"

namespace anymps::serving {

// The strings of a tensor, without a copy where they lie in one piece.
struct Strings {
  std::vector<const char*> data;
  std::vector<size_t> sizes;
};

// Adds those of one input; `joined` holds the bytes of inputs that came in several pieces. False if
// a length reaches past the end.
bool parse_strings(std::span<const Piece> pieces, Strings& strings,
                   std::deque<std::string>& joined);
// How many there are; nullopt if a length reaches past the end.
std::optional<int64_t> count_strings(std::span<const Piece> pieces);

// The bytes of `count` elements of a tensor from `first` on, and where they are written.
size_t serialized_bytes(const amps_tensor* tensor, int64_t first, int64_t count);
void serialize_strings(const amps_tensor* tensor, int64_t first, int64_t count, void* to);

}  // namespace anymps::serving
