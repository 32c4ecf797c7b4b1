// SPDX-License-Identifier: Apache-2.0
// Pictures of two by two pixels: red, green; blue, (10, 20, 30). The PNG was written by zlib, WebP
// and JPEG 2000 (both without loss) by Pillow, the others by hand; JPEG is in the ONNX suite.
#include "semantics/image/codec.h"
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

const Bytes kWebp = {82,  73,  70,  70,  50,  0,   0,   0,   87,  69, 66,  80, 86,  80,  56,
                     76,  38,  0,   0,   0,   47,  1,   64,  0,   0,  31,  32, 16,  32,  120,
                     240, 191, 106, 67,  72,  144, 208, 253, 191, 87, 129, 0,  193, 136, 255,
                     75,  243, 31,  248, 228, 168, 224, 6,   12,  17, 253, 15, 1};

const Bytes kJpeg2000 = {
    255, 79, 255, 81,  0,   47,  0,   0,   0,   0,   0,   2,   0,  0,   0,   2,   0,   0,   0,
    0,   0,  0,   0,   0,   0,   0,   0,   2,   0,   0,   0,   2,  0,   0,   0,   0,   0,   0,
    0,   0,  0,   3,   7,   1,   1,   7,   1,   1,   7,   1,   1,  255, 82,  0,   12,  0,   0,
    0,   1,  0,   0,   4,   4,   0,   1,   255, 92,  0,   4,   64, 64,  255, 100, 0,   37,  0,
    1,   67, 114, 101, 97,  116, 101, 100, 32,  98,  121, 32,  79, 112, 101, 110, 74,  80,  69,
    71,  32, 118, 101, 114, 115, 105, 111, 110, 32,  50,  46,  53, 46,  52,  255, 144, 0,   10,
    0,   0,  0,   0,   0,   40,  0,   1,   255, 147, 223, 128, 40, 11,  236, 100, 101, 76,  223,
    128, 48, 8,   242, 126, 232, 205, 203, 223, 128, 48,  6,   65, 36,  15,  171, 95,  255, 217};

// The same as a file: boxes before the code stream.
Bytes jp2() {
  Bytes bytes = {0,   0,   0,   12,  106, 80,  32, 32, 13, 10, 135, 10,  0,   0,   0,   20, 102,
                 116, 121, 112, 106, 112, 50,  32, 0,  0,  0,  0,   106, 112, 50,  32,  0,  0,
                 0,   45,  106, 112, 50,  104, 0,  0,  0,  22, 105, 104, 100, 114, 0,   0,  0,
                 2,   0,   0,   0,   2,   0,   3,  7,  7,  0,  0,   0,   0,   0,   15,  99, 111,
                 108, 114, 1,   0,   0,   0,   0,  0,  16, 0,  0,   0,   160, 106, 112, 50, 99};
  bytes.insert(bytes.end(), kJpeg2000.begin(), kJpeg2000.end());
  return bytes;
}

// Grey of 16 bits: 0, 20000; 40000, 60000.
const Bytes kGray16 = {
    255, 79,  255, 81,  0,   41,  0,   0,   0,   0,   0,   2,   0,   0,   0,   2,   0,   0,   0,
    0,   0,   0,   0,   0,   0,   0,   0,   2,   0,   0,   0,   2,   0,   0,   0,   0,   0,   0,
    0,   0,   0,   1,   15,  1,   1,   255, 82,  0,   12,  0,   0,   0,   1,   0,   0,   4,   4,
    0,   1,   255, 92,  0,   4,   64,  128, 255, 100, 0,   37,  0,   1,   67,  114, 101, 97,  116,
    101, 100, 32,  98,  121, 32,  79,  112, 101, 110, 74,  80,  69,  71,  32,  118, 101, 114, 115,
    105, 111, 110, 32,  50,  46,  53,  46,  52,  255, 144, 0,   10,  0,   0,   0,   0,   0,   26,
    0,   1,   255, 147, 223, 248, 144, 64,  7,   183, 229, 121, 107, 246, 226, 15,  255, 217};

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
  for (const Bytes& bytes : {kPng, kWebp, kJpeg2000, jp2(), pnm(), bmp()}) {
    const Picture picture = decode_picture(bytes, false), size = decode_picture(bytes, true);
    EXPECT_EQ(picture.height, 2);
    EXPECT_EQ(size.width, 2);
    EXPECT_TRUE(size.rgb.empty());
    EXPECT_EQ(picture.rgb, kPixels);
  }
}

TEST(ImageCodec, SixteenBitsBecomeEight) {
  EXPECT_EQ(decode_picture(kGray16, false).rgb,
            (Bytes{0, 0, 0, 78, 78, 78, 156, 156, 156, 234, 234, 234}));
}

// A byte that is another than it was gives pixels or an error; a size that is a lie gives an error
// before memory is taken.
TEST(ImageCodec, HostileBytesAreErrors) {
  for (const Bytes& whole : {kWebp, kJpeg2000, jp2(), kGray16})
    for (size_t at = 0; at < whole.size(); ++at)
      for (const uint8_t value : {0x00, 0x7f, 0xff}) {
        Bytes bytes = whole;
        bytes[at] = value;
        try {
          const Picture size = decode_picture(bytes, true);
          if (size.width * size.height > 1 << 16) continue;
          const Picture picture = decode_picture(bytes, false);
          EXPECT_EQ(picture.rgb.size(), static_cast<size_t>(size.width * size.height * 3));
        } catch (const Error& error) {
          EXPECT_NE(error.code(), Code::kInternal) << error.what();
        }
      }
  Bytes huge = kJpeg2000;
  for (const size_t at : {8u, 12u, 24u, 28u}) huge[at] = 0x7f;
  EXPECT_NE(error_of([&] { decode_picture(huge, true); }).find("[image_decoder]"),
            std::string::npos);
}

TEST(ImageCodec, DamagedBytesAreErrors) {
  for (const Bytes& whole : {kPng, kWebp, kJpeg2000, jp2(), pnm(), bmp()})
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
            "[image_decoder] 3 bytes that are no JPEG, JPEG 2000, PNG, WebP, BMP, PNM or TIFF "
            "picture");
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
