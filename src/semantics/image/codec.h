// SPDX-License-Identifier: Apache-2.0
// Pictures in the formats that files have: JPEG, JPEG 2000, PNG, WebP, BMP, PNM and
// plain TIFF, as 8-bit RGB.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace anymps {

struct Picture {
  int64_t height = 0, width = 0;
  std::vector<uint8_t> rgb;  // rows from the top, three bytes per pixel; none when only measured
};

// Decodes a picture, or with `measure` only tells its size. Fails, saying why, on other formats and
// on bytes that are not what they claim to be.
Picture decode_picture(std::span<const uint8_t> bytes, bool measure);

}  // namespace anymps
