// SPDX-License-Identifier: Apache-2.0
// Pictures of two by two pixels: red, green; blue, (10, 20, 30). The PNG was written by zlib, the
// others by hand; JPEG is in the ONNX suite.
#include "ops/image_codec.h"
#include "support/tensor.h"

namespace anymps {
namespace {

using testing::error_of;
using testing::TestTensor;
using Bytes = std::vector<uint8_t>;

const Bytes kPixels = {255, 0, 0, 0, 255, 0, 0, 0, 255, 10, 20, 30};

const Bytes kPng = {137, 80,  78, 71,  13,  10, 26,  10, 0,   0,   0,   13, 73,  72,  68,  82,
                    0,   0,   0,  2,   0,   0,  0,   2,  8,   2,   0,   0,  0,   253, 212, 154,
                    115, 0,   0,  0,   19,  73, 68,  65, 84,  120, 156, 99, 248, 207, 192, 192,
                    0,   194, 12, 255, 185, 68, 228, 0,  26,  88,  3,   58, 86,  99,  162, 60,
                    0,   0,   0,  0,   73,  69, 78,  68, 174, 66,  96,  130};

Bytes pnm() {
  const std::string head = "P6\n# two\n2 2\n255\n";
  Bytes bytes(head.begin(), head.end());
  bytes.insert(bytes.end(), kPixels.begin(), kPixels.end());
  return bytes;
}

Bytes bmp() {
  Bytes bytes(54, 0);
  bytes[0] = 'B';
  bytes[1] = 'M';
  bytes[10] = 54;
  bytes[14] = 40;
  bytes[18] = bytes[22] = 2;
  bytes[26] = 1;
  bytes[28] = 24;
  // Rows from the bottom, blue first, filled up to four bytes.
  for (const uint8_t b : {255, 0, 0, 30, 20, 10, 0, 0, 0, 0, 255, 0, 255, 0, 0, 0})
    bytes.push_back(b);
  return bytes;
}

TEST(ImageCodec, Formats) {
  for (const Bytes& bytes : {kPng, pnm(), bmp()}) {
    const Picture picture = decode_picture(bytes, false), size = decode_picture(bytes, true);
    EXPECT_EQ(picture.height, 2);
    EXPECT_EQ(size.width, 2);
    EXPECT_TRUE(size.rgb.empty());
    EXPECT_EQ(picture.rgb, kPixels);
  }
}

TEST(ImageCodec, DamagedBytesAreErrors) {
  for (const Bytes& whole : {kPng, pnm(), bmp()})
    for (size_t length = 0; length + 1 < whole.size(); length += 3) {
      const Bytes part(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length));
      try {
        decode_picture(part, false);
      } catch (const Error&) {
        continue;
      }
      EXPECT_GT(length, whole.size() - 14) << "of " << whole.size();  // a PNG may lack its end
    }
  EXPECT_EQ(error_of([] {
              decode_picture(Bytes{1, 2, 3}, true);
            }),
            "[image_decoder] 3 bytes that are no JPEG, PNG, BMP, PNM or TIFF picture");
}

TEST(ReferenceImage, PixelFormats) {
  const auto run = [](const char* format, int64_t channels) {
    const Op& op = get_op("image_decoder");
    KernelRequest request;
    request.op = &op;
    request.attrs = Attrs(op, {{"pixel_format", format}});
    TestTensor x = TestTensor::of<uint8_t>({static_cast<int64_t>(kPng.size())}, kPng);
    TestTensor y(DType::kU8, {2, 2, channels});
    request.inputs = {x.desc()};
    request.contents.resize(1);
    request.outputs = {y.desc()};
    void *in = x.ptr(), *out = y.ptr();
    make_reference_kernel(request)->run({&in, &out, nullptr, nullptr});
    return y.values();
  };
  EXPECT_EQ(run("BGR", 3), (std::vector<double>{0, 0, 255, 0, 255, 0, 255, 0, 0, 30, 20, 10}));
  EXPECT_EQ(run("Grayscale", 1), (std::vector<double>{76, 150, 29, 18}));
}

}  // namespace
}  // namespace anymps
