// SPDX-License-Identifier: Apache-2.0
// Pictures from the bytes of their files.
#include "drivers/reference/reference.h"
#include "semantics/image/codec.h"

namespace anymps {

REFERENCE(image_decoder) {
  const View &x = args.in[0], &y = args.out[0];
  std::vector<uint8_t> bytes;
  for_each_index(x.shape(), [&](const Shape& at) { bytes.push_back(x.at<uint8_t>(at)); });
  const Picture picture = decode_picture(bytes, false);
  require(y.extent(0) == picture.height && y.extent(1) == picture.width,
          "[image_decoder] the picture is {} x {}, the output {}", picture.height, picture.width,
          to_string(y.shape()));
  const std::string& format = args.attrs.s("pixel_format");
  for_each_index(y.shape(), [&](const Shape& at) {
    const uint8_t* pixel = picture.rgb.data() + (at[0] * picture.width + at[1]) * 3;
    // Luma as in ITU-R BT.601, in 16-bit fixed point.
    y.at<uint8_t>(at) =
        format == "Grayscale"
            ? static_cast<uint8_t>(
                  (pixel[0] * 19595 + pixel[1] * 38470 + pixel[2] * 7471 + 0x8000) >> 16)
        : format == "BGR" ? pixel[2 - at[2]]
                          : pixel[at[2]];
  });
}

}  // namespace anymps
