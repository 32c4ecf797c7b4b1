// SPDX-License-Identifier: Apache-2.0
#include "common/npy.h"

#include <fmt/format.h>

#include <bit>
#include <fstream>

namespace common {

namespace {

struct Code {
  amps::DType dtype;
  const char* text;
};
// bf16 has no code of its own in NumPy; it is written as raw 16-bit words.
constexpr Code kCodes[] = {
    {amps::DType::f32, "<f4"},     {amps::DType::f16, "<f2"}, {amps::DType::bf16, "<V2"},
    {amps::DType::f64, "<f8"},     {amps::DType::i8, "|i1"},  {amps::DType::i16, "<i2"},
    {amps::DType::i32, "<i4"},     {amps::DType::i64, "<i8"}, {amps::DType::u8, "|u1"},
    {amps::DType::u16, "<u2"},     {amps::DType::u32, "<u4"}, {amps::DType::u64, "<u8"},
    {amps::DType::boolean, "|b1"}, {amps::DType::c64, "<c8"},
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

}  // namespace

Array read_npy(const std::string& path) {
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
  const std::string type = field(path, header, "descr").substr(1, 3);
  bool known = false;
  for (const Code& code : kCodes) {
    if (type != code.text) continue;
    array.dtype = code.dtype;
    known = true;
  }
  if (!known) fail(path, "dtype '" + type + "' is not supported");
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
    if (__builtin_mul_overflow(count, static_cast<size_t>(array.shape.back()), &count) ||
        count > (size_t{1} << 40))
      fail(path, "the shape is too large");
  }
  const auto begin = file.tellg();
  file.seekg(0, std::ios::end);
  const auto available = static_cast<size_t>(file.tellg() - begin);
  if (available < count * amps::size_of(array.dtype)) fail(path, "the data is cut off");
  file.seekg(begin);
  array.data.resize(count * amps::size_of(array.dtype));
  file.read(array.data.data(), static_cast<std::streamsize>(array.data.size()));
  if (!file) fail(path, "the data is cut off");
  return array;
}

void write_npy(const std::string& path, const Array& array) {
  std::string shape;
  for (const int64_t extent : array.shape) shape += std::to_string(extent) + ", ";
  if (array.shape.size() > 1)
    shape.erase(shape.size() - 2);
  else if (array.shape.size() == 1)
    shape.pop_back();
  const char* type = "";
  for (const Code& code : kCodes)
    if (code.dtype == array.dtype) type = code.text;
  std::string header =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", type, shape);
  header.append(63 - (10 + header.size()) % 64, ' ');
  header += '\n';
  const auto length = static_cast<uint16_t>(header.size());
  std::ofstream file(path, std::ios::binary);
  file.write("\x93NUMPY\x01\x00", 8);
  file.write(reinterpret_cast<const char*>(&length), 2);
  file << header;
  file.write(array.data.data(), static_cast<std::streamsize>(array.data.size()));
  if (!file.flush()) throw amps::Error(AMPS_IO, fmt::format("[npy] {}: cannot be written", path));
}

Array to_array(const amps::Tensor& tensor) {
  Array array{tensor.dtype(), tensor.shape(), std::vector<char>(tensor.bytes())};
  tensor.to_host(array.data.data(), array.data.size());
  return array;
}

double element(const Array& array, size_t i) {
  auto get = [&]<typename T>(T value) {
    std::memcpy(&value, array.data.data() + i * amps::size_of(array.dtype), sizeof(T));
    return static_cast<double>(value);
  };
  switch (array.dtype) {
    case amps::DType::f32:
    case amps::DType::c64:
      return get(float{});
    case amps::DType::f64:
      return get(double{});
    case amps::DType::i8:
      return get(int8_t{});
    case amps::DType::i16:
      return get(int16_t{});
    case amps::DType::i32:
      return get(int32_t{});
    case amps::DType::i64:
      return get(int64_t{});
    case amps::DType::u8:
    case amps::DType::boolean:
      return get(uint8_t{});
    case amps::DType::u16:
      return get(uint16_t{});
    case amps::DType::u32:
      return get(uint32_t{});
    case amps::DType::u64:
      return get(uint64_t{});
    case amps::DType::bf16: {
      uint16_t bits;
      std::memcpy(&bits, array.data.data() + i * 2, 2);
      return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
    }
    case amps::DType::f16: {
      uint16_t bits;
      std::memcpy(&bits, array.data.data() + i * 2, 2);
      const int exponent = bits >> 10 & 31, mantissa = bits & 1023;
      const double magnitude = exponent == 31 ? (mantissa ? NAN : INFINITY)
                               : exponent     ? std::ldexp(1024 + mantissa, exponent - 25)
                                              : std::ldexp(mantissa, -24);
      return bits >> 15 ? -magnitude : magnitude;
    }
  }
  return 0;
}

}  // namespace common
