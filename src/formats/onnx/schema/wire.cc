// SPDX-License-Identifier: Apache-2.0
#include "formats/onnx/schema/wire.h"

#include <cstring>
#include <limits>

namespace anymps::onnx {

using protozero::pbf_wire_type;

bool is_utf8(std::string_view text) {
  const auto* p = reinterpret_cast<const unsigned char*>(text.data());
  const auto* end = p + text.size();
  while (p < end) {
    if (*p < 0x80) {
      ++p;
      continue;
    }
    int more = *p >= 0xC2 && *p < 0xE0   ? 1
               : *p >= 0xE0 && *p < 0xF0 ? 2
               : *p >= 0xF0 && *p < 0xF5 ? 3
                                         : 0;
    if (more == 0 || end - p <= more) return false;
    // Overlong forms, surrogates and code points past U+10FFFF show in the second byte.
    unsigned char low = *p == 0xE0 ? 0xA0 : *p == 0xF0 ? 0x90 : 0x80;
    unsigned char high = *p == 0xED ? 0x9F : *p == 0xF4 ? 0x8F : 0xBF;
    if (p[1] < low || p[1] > high) return false;
    for (int i = 2; i <= more; ++i)
      if ((p[i] & 0xC0) != 0x80) return false;
    p += more + 1;
  }
  return true;
}

std::string WirePath::text() const {
  std::string text;
  for (const Step& step : steps_) {
    if (!text.empty()) text += '.';
    text += step.field;
    if (step.index >= 0) text += fmt::format("[{}]", step.index);
  }
  return text.empty() ? "model" : text;
}

protozero::pbf_reader& WireReader::as(pbf_wire_type type) {
  if (!reader_.has_wire_type(type))
    wire_fail(Code::kCorrupt, "field {} has wire type {}, expected {}", tag(),
              static_cast<int>(reader_.wire_type()), static_cast<int>(type));
  return reader_;
}

void WireReader::skip() {
  if (is_packed())
    bytes();
  else
    reader_.skip();
}

int64_t WireReader::int64() { return as(pbf_wire_type::varint).get_int64(); }
int32_t WireReader::int32() { return as(pbf_wire_type::varint).get_int32(); }
float WireReader::float32() { return as(pbf_wire_type::fixed32).get_float(); }
double WireReader::float64() { return as(pbf_wire_type::fixed64).get_double(); }

std::string_view WireReader::bytes() {
  protozero::data_view rest = as(pbf_wire_type::length_delimited).data();
  const char* at = rest.data();
  const char* end = at + rest.size();
  uint64_t length = protozero::decode_varint(&at, end);
  if (length > static_cast<uint64_t>(end - at))
    wire_fail(Code::kCorrupt,
              "field {} has length {}, but only {} bytes are left (truncated file?)", tag(), length,
              end - at);
  if (length > std::numeric_limits<protozero::pbf_length_type>::max())
    wire_fail(Code::kUnsupported, "field {} has length {}; fields of 4 GiB belong in external data",
              tag(), length);
  protozero::data_view view = reader_.get_view();
  return {view.data(), view.size()};
}

std::string_view WireReader::string() {
  uint32_t field = tag();
  std::string_view text = bytes();
  if (!is_utf8(text)) wire_fail(Code::kCorrupt, "field {} is not valid UTF-8", field);
  return text;
}

void WireReader::read(std::vector<int64_t>& to) {
  if (!is_packed()) {
    to.push_back(int64());
    return;
  }
  std::string_view packed = bytes();
  const char* at = packed.data();
  const char* end = at + packed.size();
  while (at != end) to.push_back(static_cast<int64_t>(protozero::decode_varint(&at, end)));
}

void WireReader::read(std::vector<float>& to) {
  if (!is_packed()) {
    to.push_back(float32());
    return;
  }
  uint32_t field = tag();
  std::string_view packed = bytes();
  if (packed.size() % sizeof(float) != 0)
    wire_fail(Code::kCorrupt, "field {} has {} bytes, not a multiple of 4", field, packed.size());
  size_t old = to.size();
  to.resize(old + packed.size() / sizeof(float));
  if (!packed.empty()) std::memcpy(to.data() + old, packed.data(), packed.size());
}

}  // namespace anymps::onnx
