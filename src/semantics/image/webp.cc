// SPDX-License-Identifier: Apache-2.0
// WebP, of both kinds (with loss and without), through libwebp; alpha is left out.
#include <webp/decode.h>

#include "semantics/image/formats.h"

namespace anymps {

namespace {

const char* reason(VP8StatusCode status) {
  switch (status) {
    case VP8_STATUS_OUT_OF_MEMORY:
      return "there is no memory for it";
    case VP8_STATUS_BITSTREAM_ERROR:
      return "its bits mean nothing";
    case VP8_STATUS_UNSUPPORTED_FEATURE:
      return "it uses what no decoder knows";
    case VP8_STATUS_NOT_ENOUGH_DATA:
      return "it ends early";
    default:
      return "it cannot be read";
  }
}

}  // namespace

Picture decode_webp(PictureBytes bytes, bool measure) {
  WebPBitstreamFeatures features;
  const VP8StatusCode status = WebPGetFeatures(bytes.data(), bytes.size(), &features);
  if (status != VP8_STATUS_OK) corrupt_picture("WebP", reason(status));
  if (features.has_animation)
    fail(Code::kUnsupported, "[image_decoder] moving WebP pictures are not supported");
  Picture picture = sized_picture("WebP", features.width, features.height, measure);
  if (!measure && !WebPDecodeRGBInto(bytes.data(), bytes.size(), picture.rgb.data(),
                                     picture.rgb.size(), features.width * 3))
    corrupt_picture("WebP", "its pixels cannot be read");
  return picture;
}

}  // namespace anymps
