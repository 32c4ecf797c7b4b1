// SPDX-License-Identifier: Apache-2.0
// JPEG 2000, as a file (JP2) and as a bare code stream, through OpenJPEG: grey or RGB, with or
// without alpha, which is left out. Samples of other widths than 8 bits are brought to 8.
#include <openjpeg.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>

#include "semantics/image/formats.h"

namespace anymps {

namespace {

constexpr const char* kFormat = "JPEG 2000";
// The decoder holds an int for each sample, and more while it works.
constexpr int64_t kMost = kMostPixels / 4;

// The bytes as OpenJPEG's stream; positions past the end are refused.
struct Source {
  PictureBytes bytes;
  size_t at = 0;
};

OPJ_SIZE_T read_some(void* buffer, OPJ_SIZE_T wanted, void* user) {
  auto* source = static_cast<Source*>(user);
  const size_t count = std::min<size_t>(wanted, source->bytes.size() - source->at);
  if (count == 0) return static_cast<OPJ_SIZE_T>(-1);
  std::memcpy(buffer, source->bytes.data() + source->at, count);
  source->at += count;
  return count;
}

OPJ_OFF_T skip_some(OPJ_OFF_T wanted, void* user) {
  auto* source = static_cast<Source*>(user);
  const size_t left = source->bytes.size() - source->at;
  if (wanted < 0 || left == 0) return -1;
  const size_t count = std::min<uint64_t>(static_cast<uint64_t>(wanted), left);
  source->at += count;
  return static_cast<OPJ_OFF_T>(count);
}

OPJ_BOOL go_to(OPJ_OFF_T place, void* user) {
  auto* source = static_cast<Source*>(user);
  if (place < 0 || static_cast<uint64_t>(place) > source->bytes.size()) return OPJ_FALSE;
  source->at = place;
  return OPJ_TRUE;
}

// The first complaint is the cause; those after it follow from it. Called from C: nothing may
// throw.
struct Complaint {
  char text[256] = "";
};
void complain(const char* text, void* user) {
  auto* complaint = static_cast<Complaint*>(user);
  if (complaint->text[0] != '\0') return;
  std::strncpy(complaint->text, text, sizeof(complaint->text) - 1);
  complaint->text[std::strcspn(complaint->text, "\r\n")] = '\0';
}
void ignore(const char*, void*) {}

template <auto destroy>
struct Destroy {
  template <typename T>
  void operator()(T* object) const {
    destroy(object);
  }
};
using Codec = std::unique_ptr<opj_codec_t, Destroy<opj_destroy_codec>>;
using Stream = std::unique_ptr<opj_stream_t, Destroy<opj_stream_destroy>>;
using Image = std::unique_ptr<opj_image_t, Destroy<opj_image_destroy>>;

// What is not a plain grid of grey or RGB samples is refused.
void check_image(const opj_image_t& image) {
  const int64_t width = int64_t{image.x1} - image.x0, height = int64_t{image.y1} - image.y0;
  check_picture_size(kFormat, width, height, kMost);
  const bool known = image.color_space == OPJ_CLRSPC_SRGB || image.color_space == OPJ_CLRSPC_GRAY ||
                     image.color_space == OPJ_CLRSPC_UNSPECIFIED ||
                     image.color_space == OPJ_CLRSPC_UNKNOWN;
  if (!known || image.numcomps < 1 || image.numcomps > 4)
    fail(
        Code::kUnsupported,
        "[image_decoder] a JPEG 2000 picture of {} components in color space {}: only grey and RGB",
        image.numcomps, static_cast<int>(image.color_space));
  for (uint32_t c = 0; c < image.numcomps; ++c)
    if (image.comps[c].dx != 1 || image.comps[c].dy != 1 || image.comps[c].prec < 1 ||
        image.comps[c].prec > 16)
      fail(Code::kUnsupported,
           "[image_decoder] component {} of a JPEG 2000 picture has {} bits and steps of {} x {}: "
           "only 1 to 16 bits and a sample for each pixel",
           c, image.comps[c].prec, image.comps[c].dx, image.comps[c].dy);
}

uint8_t to_byte(int32_t sample, const opj_image_comp_t& component) {
  const auto bits = static_cast<int>(component.prec);
  const int64_t most = (int64_t{1} << bits) - 1;
  int64_t value = int64_t{sample} + (component.sgnd ? int64_t{1} << (bits - 1) : 0);
  value = std::clamp<int64_t>(value, 0, most);
  if (bits <= 8) return static_cast<uint8_t>(value * 255 / most);
  return static_cast<uint8_t>(
      std::min<int64_t>(255, (value + (int64_t{1} << (bits - 9))) >> (bits - 8)));
}

}  // namespace

Picture decode_jpeg2000(PictureBytes bytes, bool measure) {
  const bool bare = bytes.size() > 1 && bytes[0] == 0xff && bytes[1] == 0x4f;
  Complaint complaint;
  const auto damaged = [&] {
    corrupt_picture(kFormat, complaint.text[0] ? complaint.text : "it cannot be read");
  };
  Source source{bytes};
  Codec codec(opj_create_decompress(bare ? OPJ_CODEC_J2K : OPJ_CODEC_JP2));
  Stream stream(opj_stream_create(size_t{64} << 10, OPJ_TRUE));
  if (!codec || !stream) fail(Code::kOutOfMemory, "[image_decoder] no memory for a decoder");
  opj_stream_set_user_data(stream.get(), &source, nullptr);
  opj_stream_set_user_data_length(stream.get(), bytes.size());
  opj_stream_set_read_function(stream.get(), read_some);
  opj_stream_set_skip_function(stream.get(), skip_some);
  opj_stream_set_seek_function(stream.get(), go_to);
  opj_set_error_handler(codec.get(), complain, &complaint);
  opj_set_warning_handler(codec.get(), ignore, nullptr);
  opj_set_info_handler(codec.get(), ignore, nullptr);
  opj_dparameters_t parameters;
  opj_set_default_decoder_parameters(&parameters);
  if (!opj_setup_decoder(codec.get(), &parameters)) damaged();
  opj_image_t* header = nullptr;
  const bool read = opj_read_header(stream.get(), codec.get(), &header);
  const Image image(header);
  if (!read || !image) damaged();
  check_image(*image);
  const auto width = static_cast<int64_t>(image->x1 - image->x0);
  const auto height = static_cast<int64_t>(image->y1 - image->y0);
  Picture picture = sized_picture(kFormat, width, height, measure);
  if (measure) return picture;
  if (!opj_decode(codec.get(), stream.get(), image.get()) ||
      !opj_end_decompress(codec.get(), stream.get()))
    damaged();
  check_image(*image);  // a palette or the file's boxes may have changed the components
  const uint32_t colors = image->numcomps < 3 ? 1 : 3;
  for (uint32_t c = 0; c < colors; ++c) {
    const opj_image_comp_t& component = image->comps[c];
    if (!component.data || component.w != width || component.h != height)
      corrupt_picture(kFormat, "a component is not of the picture's size");
    for (size_t i = 0; i < static_cast<size_t>(width * height); ++i) {
      const uint8_t value = to_byte(component.data[i], component);
      if (colors == 3)
        picture.rgb[i * 3 + c] = value;
      else
        std::fill_n(picture.rgb.begin() + static_cast<std::ptrdiff_t>(i * 3), 3, value);
    }
  }
  return picture;
}

}  // namespace anymps
