// SPDX-License-Identifier: Apache-2.0
// Pictures from the bytes of their files.
#include "ops/expect.h"
#include "ops/gradient.h"
#include "semantics/image/codec.h"

namespace anymps {

OP(image_decoder)
    .doc(
        "The pixels of a picture, of which x holds the file's bytes: JPEG, JPEG 2000 (grey or "
        "RGB), PNG, WebP, BMP, PNM, plain TIFF. Alpha is left out. Moving WebP and packed TIFF "
        "are refused. The size depends on the bytes.")
    .formula("y[row, column, channel], 0 to 255")
    .input("x", bit(DType::kU8), "T", "[bytes]")
    .output("y", "T", "[height, width, channels]")
    .attr("pixel_format", "RGB", {"RGB", "BGR", "Grayscale"})
    .reference_only("a library's decoder does the work")
    .infer([](InferContext& ctx) {
      expect_rank(ctx, 0, 1, 1);
      const int64_t channels = ctx.attrs.s("pixel_format") == "Grayscale" ? 1 : 3;
      ctx.set(0, {ctx.fresh("height"), ctx.fresh("width"), channels});
    })
    .measure([](const MeasureContext& ctx) -> std::vector<Shape> {
      const MeasureInput& x = ctx.inputs[0];
      const Picture picture =
          decode_picture({x.as<uint8_t>(), static_cast<size_t>(x.desc.count())}, true);
      const int64_t channels = ctx.attrs.s("pixel_format") == "Grayscale" ? 1 : 3;
      return {{picture.height, picture.width, channels}};
    })
    .no_tests("it needs a picture's bytes; see tests/drivers/reference/image_test.cc");

ZERO_GRADIENT(image_decoder, "pixels are whole numbers");

}  // namespace anymps
