// SPDX-License-Identifier: Apache-2.0
#include "common/npy.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <tuple>

#include "common/number_type.h"
#include "common/utf8.h"

namespace anymps::common {

namespace {

struct Code {
  amps::DType dtype;
  const char* text;
};
// NumPy has no code for bf16; it is written as raw 16-bit words.
constexpr Code kCodes[] = {
    {amps::DType::f32, "<f4"},     {amps::DType::f16, "<f2"}, {amps::DType::bf16, "<V2"},
    {amps::DType::f64, "<f8"},     {amps::DType::i8, "|i1"},  {amps::DType::i16, "<i2"},
    {amps::DType::i32, "<i4"},     {amps::DType::i64, "<i8"}, {amps::DType::u8, "|u1"},
    {amps::DType::u16, "<u2"},     {amps::DType::u32, "<u4"}, {amps::DType::u64, "<u8"},
    {amps::DType::boolean, "|b1"}, {amps::DType::c64, "<c8"}, {amps::DType::c128, "<c16"},
};

[[noreturn]] void fail(const std::string& path, const std::string& reason) {
  throw amps::Error(AMPS_CORRUPT, fmt::format("[npy] {}: {}", path, reason));
}

std::string field(const std::string& path, const std::string& header, const std::string& key) {
  const size_t at = header.find("'" + key + "':");
  if (at == std::string::npos) fail(path, "the header has no '" + key + "'");
  size_t begin = at + key.size() + 3;
  while (begin < header.size() && header[begin] == ' ') ++begin;
  return header.substr(begin);
}

// NumPy pads strings with zeros.
std::string utf8(const char* points, size_t width) {
  std::string text;
  for (size_t i = 0; i < width; ++i) {
    uint32_t point = 0;
    std::memcpy(&point, points + i * sizeof(point), sizeof(point));
    append_utf8(text, point);
  }
  text.resize(text.find_last_not_of('\0') + 1);
  return text;
}

// Bytes that are not UTF-8 stand for themselves.
std::vector<uint32_t> code_points(const std::string& text) {
  std::vector<uint32_t> points;
  for (size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    const size_t more = lead >= 0xf0 ? 3 : lead >= 0xe0 ? 2 : lead >= 0xc0 ? 1 : 0;
    uint32_t point = more ? lead & (0x3fu >> more) : lead;
    bool good = i + more < text.size();
    for (size_t k = 1; good && k <= more; ++k) {
      const auto next = static_cast<unsigned char>(text[i + k]);
      good = (next & 0xc0) == 0x80;
      point = point << 6 | (next & 63);
    }
    points.push_back(good ? point : lead);
    i += good ? more + 1 : 1;
  }
  return points;
}

// Strings as NumPy has them, all as long as the longest: their code points, and that length.
std::pair<std::vector<char>, size_t> unicode_array(const std::vector<std::string>& strings) {
  std::vector<std::vector<uint32_t>> points;
  size_t width = 1;
  for (const std::string& text : strings) {
    points.push_back(code_points(text));
    width = std::max(width, points.back().size());
  }
  std::vector<char> data;
  for (std::vector<uint32_t>& one : points) {
    one.resize(width);
    const char* bytes = reinterpret_cast<const char*>(one.data());
    data.insert(data.end(), bytes, bytes + width * sizeof(uint32_t));
  }
  return {std::move(data), width};
}

}  // namespace

Array read_npy(const std::string& path) {
  std::error_code none;
  const auto kind = std::filesystem::status(path, none).type();
  if (kind != std::filesystem::file_type::regular && kind != std::filesystem::file_type::not_found)
    fail(path, "is not a regular file");  // a pipe would be waited for
  std::ifstream file(path, std::ios::binary);
  if (!file) throw amps::Error(AMPS_NOT_FOUND, fmt::format("[npy] {}: cannot be opened", path));
  char magic[8] = {};
  file.read(magic, 8);
  if (!file || std::string_view(magic, 6) != "\x93NUMPY") fail(path, "is not a .npy file");
  uint32_t length = 0;
  file.read(reinterpret_cast<char*>(&length), magic[6] == 1 ? 2 : 4);
  if (!file || length > (1u << 20)) fail(path, "the header is broken");
  std::string header(length, '\0');
  file.read(header.data(), length);
  if (!file) fail(path, "the header is cut off");

  Array array;
  const std::string quoted = field(path, header, "descr");
  const size_t end = quoted.find('\'', 1);
  if (!quoted.starts_with('\'') || end == std::string::npos) fail(path, "the header is broken");
  const std::string type = quoted.substr(1, end - 1);
  size_t width = 0;  // of a string, in code points
  if (type.starts_with("<U") && type.size() < 10) {
    array.dtype = amps::DType::string;
    std::from_chars(type.data() + 2, type.data() + type.size(), width);
    if (width == 0) fail(path, "dtype '" + type + "' is not supported");
  } else {
    const auto code = std::find_if(std::begin(kCodes), std::end(kCodes),
                                   [&](const Code& one) { return type == one.text; });
    if (code == std::end(kCodes)) fail(path, "dtype '" + type + "' is not supported");
    array.dtype = code->dtype;
  }
  if (field(path, header, "fortran_order").starts_with("True"))
    fail(path, "is in Fortran order; save it with numpy.ascontiguousarray");
  const std::string shape = field(path, header, "shape");
  size_t count = 1;
  for (size_t i = 1; i < shape.size() && shape[i] != ')';) {
    if (shape[i] < '0' || shape[i] > '9') {
      ++i;
      continue;
    }
    size_t used = 0;
    array.shape.push_back(std::stoll(shape.substr(i, 18), &used));
    i += used;
    if (__builtin_mul_overflow(count, array.shape.back(), &count) || count > (size_t{1} << 40))
      fail(path, "the shape is too large");
  }
  const auto begin = file.tellg();
  file.seekg(0, std::ios::end);
  const size_t available = file.tellg() - begin;
  const bool text = array.dtype == amps::DType::string;
  const size_t size = text ? width * sizeof(uint32_t) : amps::size_of(array.dtype);
  if (available / size < count) fail(path, "the data is cut off");
  file.seekg(begin);
  array.data.resize(count * size);
  file.read(array.data.data(), static_cast<std::streamsize>(array.data.size()));
  if (!file) fail(path, "the data is cut off");
  if (!text) return array;
  for (size_t i = 0; i < count; ++i) array.strings.push_back(utf8(&array.data[i * size], width));
  array.data.clear();
  return array;
}

void write_npy(const std::string& path, const Array& array) {
  std::string shape;
  for (const int64_t extent : array.shape) shape += std::to_string(extent) + ", ";
  if (array.shape.size() > 1)
    shape.erase(shape.size() - 2);
  else if (array.shape.size() == 1)
    shape.pop_back();
  std::string type;
  std::vector<char> units;  // of strings
  const bool text = array.dtype == amps::DType::string;
  if (text) {
    size_t width = 0;
    std::tie(units, width) = unicode_array(array.strings);
    type = fmt::format("<U{}", width);
  }
  for (const Code& code : kCodes)
    if (code.dtype == array.dtype) type = code.text;
  if (type.empty())
    throw amps::Error(AMPS_UNSUPPORTED, fmt::format("[npy] {}: NumPy has no type for {}", path,
                                                    amps::name(array.dtype)));
  std::string header =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", type, shape);
  header.append(63 - (10 + header.size()) % 64, ' ');
  header += '\n';
  const auto length = static_cast<uint16_t>(header.size());
  const std::vector<char>& data = text ? units : array.data;
  amps::write_file(path, {{"\x93NUMPY\x01\x00", 8},
                          {reinterpret_cast<const char*>(&length), 2},
                          header,
                          {data.data(), data.size()}});
}

Array to_array(const amps::Tensor& tensor) {
  Array array{tensor.dtype(), tensor.shape(), {}, {}};
  if (array.dtype == amps::DType::string) {
    array.strings = tensor.to_strings();
    return array;
  }
  array.data.resize(tensor.bytes());
  tensor.to_host(array.data.data(), array.data.size());
  return array;
}

amps::Tensor to_tensor(const amps::Device& device, const Array& array) {
  if (array.dtype == amps::DType::string) return device.from_strings(array.shape, array.strings);
  return device.from_host(array.dtype, array.shape, array.data.data());
}

double element(const Array& array, size_t i) {
  const auto read = [&]<typename T>(T value) {
    std::memcpy(&value, array.data.data() + i * amps::size_of(array.dtype), sizeof(T));
    return value;
  };
  double number = 0;
  if (with_number_type(static_cast<amps_dtype>(array.dtype),
                       [&]<typename T>() { number = static_cast<double>(read(T{})); }))
    return number;
  switch (array.dtype) {
    case amps::DType::c64:
      return double{read(float{})};
    case amps::DType::c128:
      return read(double{});
    case amps::DType::boolean:
      return read(uint8_t{});
    case amps::DType::bf16:
      return std::bit_cast<float>(static_cast<uint32_t>(read(uint16_t{})) << 16);
    case amps::DType::f16: {
      const uint16_t bits = read(uint16_t{});
      const int exponent = bits >> 10 & 31, mantissa = bits & 1023;
      const double magnitude = exponent == 31 ? (mantissa ? NAN : INFINITY)
                               : exponent     ? std::ldexp(1024 + mantissa, exponent - 25)
                                              : std::ldexp(mantissa, -24);
      return bits >> 15 ? -magnitude : magnitude;
    }
    default:
      throw amps::Error(AMPS_UNSUPPORTED,
                        fmt::format("[npy] {} is not read as a number", amps::name(array.dtype)));
  }
}

}  // namespace anymps::common
