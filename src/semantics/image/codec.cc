// SPDX-License-Identifier: Apache-2.0
#include "semantics/image/codec.h"

#include <png.h>

#include <algorithm>
#include <csetjmp>
#include <cstdio>
#include <cstring>
#include <string_view>
// jpeglib.h needs what <cstdio> declares.
#include <jpeglib.h>

#include "semantics/image/formats.h"

namespace anymps {

namespace {

using Bytes = PictureBytes;

// Reads numbers of either byte order, never past the end.
class Reader {
 public:
  Reader(const char* format, Bytes bytes, bool little = true)
      : format_(format), bytes_(bytes), little_(little) {}
  uint8_t u8(size_t at) const {
    if (at >= bytes_.size()) corrupt_picture(format_, "it ends early");
    return bytes_[at];
  }
  uint32_t number(size_t at, size_t size) const {
    uint32_t value = 0;
    for (size_t i = 0; i < size; ++i)
      value |= uint32_t{u8(at + i)} << 8 * (little_ ? i : size - 1 - i);
    return value;
  }

 private:
  const char* format_;
  Bytes bytes_;
  bool little_;
};

Picture decode_png(Bytes bytes, bool measure) {
  png_image image;
  std::memset(&image, 0, sizeof image);
  image.version = PNG_IMAGE_VERSION;
  if (!png_image_begin_read_from_memory(&image, bytes.data(), bytes.size()))
    corrupt_picture("PNG", image.message);
  image.format = PNG_FORMAT_RGBA;
  const int64_t width = image.width, height = image.height;
  if (width <= 0 || height <= 0 || width > kMostPixels / height) {
    png_image_free(&image);
    check_picture_size("PNG", width, height);
  }
  Picture picture{height, width, {}};
  if (measure) {
    png_image_free(&image);
    return picture;
  }
  std::vector<uint8_t> pixels(width * height * 4);
  if (!png_image_finish_read(&image, nullptr, pixels.data(), 0, nullptr))
    corrupt_picture("PNG", image.message);
  for (size_t i = 0; i < pixels.size(); i += 4)
    picture.rgb.insert(picture.rgb.end(), pixels.begin() + static_cast<std::ptrdiff_t>(i),
                       pixels.begin() + static_cast<std::ptrdiff_t>(i + 3));
  return picture;
}

struct JpegErrors {
  jpeg_error_mgr manager;
  std::jmp_buf back;
  char message[JMSG_LENGTH_MAX];
};

void leave_jpeg(j_common_ptr info) {
  auto* errors = reinterpret_cast<JpegErrors*>(info->err);
  (*info->err->format_message)(info, errors->message);
  std::longjmp(errors->back, 1);
}

// Only plain data is alive between setjmp and longjmp. `rgb` null: only the size is read.
bool read_jpeg(Bytes bytes, JpegErrors& errors, int64_t& width, int64_t& height, uint8_t* rgb) {
  jpeg_decompress_struct info;
  info.err = jpeg_std_error(&errors.manager);
  errors.manager.error_exit = leave_jpeg;
  errors.manager.output_message = [](j_common_ptr) {};
  if (setjmp(errors.back)) {
    jpeg_destroy_decompress(&info);
    return false;
  }
  jpeg_create_decompress(&info);
  jpeg_mem_src(&info, bytes.data(), static_cast<unsigned long>(bytes.size()));
  jpeg_read_header(&info, TRUE);
  width = info.image_width;
  height = info.image_height;
  if (rgb) {
    info.out_color_space = JCS_RGB;
    jpeg_start_decompress(&info);
    while (info.output_scanline < info.output_height) {
      JSAMPROW row = rgb + static_cast<int64_t>(info.output_scanline) * width * 3;
      jpeg_read_scanlines(&info, &row, 1);
    }
    jpeg_finish_decompress(&info);
  }
  jpeg_destroy_decompress(&info);
  return true;
}

Picture decode_jpeg(Bytes bytes, bool measure) {
  JpegErrors errors;
  int64_t width = 0, height = 0;
  if (!read_jpeg(bytes, errors, width, height, nullptr)) corrupt_picture("JPEG", errors.message);
  Picture picture = sized_picture("JPEG", width, height, measure);
  if (!measure && !read_jpeg(bytes, errors, width, height, picture.rgb.data()))
    corrupt_picture("JPEG", errors.message);
  return picture;
}

Picture decode_bmp(Bytes bytes, bool measure) {
  const Reader read("BMP", bytes);
  const uint32_t start = read.number(10, 4), header = read.number(14, 4);
  if (header < 40) fail(Code::kUnsupported, "[image_decoder] a BMP header of {} bytes", header);
  const auto width = static_cast<int32_t>(read.number(18, 4));
  const auto rows = static_cast<int32_t>(read.number(22, 4));  // negative: from the top
  const uint32_t depth = read.number(28, 2), compression = read.number(30, 4);
  if (compression != 0 || (depth != 8 && depth != 24 && depth != 32))
    fail(Code::kUnsupported, "[image_decoder] a BMP picture of {} bits, compression {}", depth,
         compression);
  const int64_t height = rows < 0 ? -int64_t{rows} : rows;
  Picture picture = sized_picture("BMP", width, height, measure);
  if (measure) return picture;
  const size_t pixel = depth / 8, line = (static_cast<size_t>(width) * pixel + 3) / 4 * 4;
  const size_t palette = 14 + header;
  for (int64_t y = 0; y < height; ++y) {
    const size_t from = start + static_cast<size_t>(rows < 0 ? y : height - 1 - y) * line;
    for (int64_t x = 0; x < width; ++x) {
      size_t at = from + static_cast<size_t>(x) * pixel;
      if (depth == 8) at = palette + size_t{read.u8(at)} * 4;
      for (size_t c = 0; c < 3; ++c)
        picture.rgb[static_cast<size_t>(y * width + x) * 3 + c] = read.u8(at + 2 - c);
    }
  }
  return picture;
}

// Plain and raw PGM and PPM of 8 bits.
Picture decode_pnm(Bytes bytes, bool measure) {
  const Reader read("PNM", bytes);
  const char kind = static_cast<char>(read.u8(1));
  if (kind != '5' && kind != '6')
    fail(Code::kUnsupported, "[image_decoder] a PNM picture of kind P{}, only P5 and P6", kind);
  size_t at = 2;
  const auto number = [&] {
    for (;; ++at) {
      if (read.u8(at) == '#')
        while (read.u8(at) != '\n') ++at;
      else if (read.u8(at) != ' ' && read.u8(at) != '\n' && read.u8(at) != '\t' &&
               read.u8(at) != '\r')
        break;
    }
    int64_t value = 0;
    for (; read.u8(at) >= '0' && read.u8(at) <= '9' && value < 1'000'000'000; ++at)
      value = value * 10 + (read.u8(at) - '0');
    return value;
  };
  const int64_t width = number(), height = number(), most = number();
  if (most != 255)
    fail(Code::kUnsupported, "[image_decoder] a PNM picture of values to {}, only to 255", most);
  Picture picture = sized_picture("PNM", width, height, measure);
  ++at;
  for (size_t i = 0; i < picture.rgb.size(); ++i)
    picture.rgb[i] = read.u8(at + (kind == '5' ? i / 3 : i));
  return picture;
}

// Strips of 8-bit grey or RGB pixels that are not compressed.
Picture decode_tiff(Bytes bytes, bool measure) {
  const Reader read("TIFF", bytes, bytes[0] == 'I');
  const size_t directory = read.number(4, 4), entries = read.number(directory, 2);
  // The k-th number of a tag; `otherwise` when the tag is not there.
  const auto tag = [&](uint32_t name, size_t k, uint32_t otherwise) {
    for (size_t i = 0; i < entries; ++i) {
      const size_t at = directory + 2 + i * 12;
      if (read.number(at, 2) != name) continue;
      const size_t size = read.number(at + 2, 2) == 3 ? 2 : 4, count = read.number(at + 4, 4);
      if (k >= count) return otherwise;
      return read.number((count * size <= 4 ? at + 8 : read.number(at + 8, 4)) + k * size, size);
    }
    return otherwise;
  };
  const int64_t width = tag(256, 0, 0), height = tag(257, 0, 0);
  const uint32_t samples = tag(277, 0, 1);
  if (tag(259, 0, 1) != 1 || tag(258, 0, 1) != 8 || tag(284, 0, 1) != 1 || samples < 1 ||
      samples > 4 || tag(262, 0, 1) > 2 || tag(322, 0, 0) != 0)
    fail(Code::kUnsupported,
         "[image_decoder] a TIFF picture that is compressed, tiled or not of 8-bit grey or RGB");
  Picture picture = sized_picture("TIFF", width, height, measure);
  if (measure) return picture;
  const bool inverted = tag(262, 0, 1) == 0;
  const int64_t rows = std::max<int64_t>(1, tag(278, 0, static_cast<uint32_t>(height)));
  for (int64_t y = 0; y < height; ++y) {
    const size_t strip = tag(273, y / rows, 0);
    const size_t line = strip + static_cast<size_t>(y % rows * width) * samples;
    for (int64_t x = 0; x < width; ++x)
      for (size_t c = 0; c < 3; ++c) {
        const uint8_t value =
            read.u8(line + static_cast<size_t>(x) * samples + (samples < 3 ? 0 : c));
        picture.rgb[static_cast<size_t>(y * width + x) * 3 + c] =
            inverted ? static_cast<uint8_t>(255 - value) : value;
      }
  }
  return picture;
}

}  // namespace

Picture decode_picture(Bytes bytes, bool measure) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const auto is = [&](std::string_view magic, size_t at = 0) {
    return text.size() >= at + magic.size() && text.substr(at, magic.size()) == magic;
  };
  using namespace std::string_view_literals;
  if (is("\x89PNG"sv)) return decode_png(bytes, measure);
  if (is("\xff\xd8\xff"sv)) return decode_jpeg(bytes, measure);
  if (is("BM"sv)) return decode_bmp(bytes, measure);
  if (is("P5"sv) || is("P6"sv)) return decode_pnm(bytes, measure);
  if (is("II*\0"sv) || is("MM\0*"sv)) return decode_tiff(bytes, measure);
  if (is("RIFF"sv) && is("WEBP"sv, 8)) return decode_webp(bytes, measure);
  if (is("\0\0\0\x0cjP  \r\n\x87\n"sv) || is("\xff\x4f\xff\x51"sv))
    return decode_jpeg2000(bytes, measure);
  fail(Code::kUnsupported,
       "[image_decoder] {} bytes that are no JPEG, JPEG 2000, PNG, WebP, BMP, PNM or TIFF picture",
       bytes.size());
}

}  // namespace anymps
