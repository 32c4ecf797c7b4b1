// SPDX-License-Identifier: Apache-2.0
// What the decoders of pictures share, and those that have a file of their own. Nothing in a
// picture is trusted: sizes are bounded before memory is taken for them.
#pragma once

#include "base/error.h"
#include "semantics/image/codec.h"

namespace anymps {

using PictureBytes = std::span<const uint8_t>;

inline constexpr int64_t kMostPixels = int64_t{1} << 28;

inline void check_picture_size(const char* format, int64_t width, int64_t height,
                               int64_t most = kMostPixels) {
  require(width > 0 && height > 0 && width <= most / height,
          "[image_decoder] a {} picture of {} x {} pixels", format, width, height);
}

[[noreturn]] inline void corrupt_picture(const char* format, const char* what) {
  fail(Code::kCorrupt, "[image_decoder] the {} picture is damaged: {}", format, what);
}

// A picture of this size, with room for its pixels unless it is only measured.
inline Picture sized_picture(const char* format, int64_t width, int64_t height, bool measure) {
  check_picture_size(format, width, height);
  Picture picture{height, width, {}};
  if (!measure) picture.rgb.resize(height * width * 3);
  return picture;
}

Picture decode_jpeg2000(PictureBytes bytes, bool measure);
Picture decode_webp(PictureBytes bytes, bool measure);

}  // namespace anymps
