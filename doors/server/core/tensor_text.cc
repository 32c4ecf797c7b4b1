// SPDX-License-Identifier: Apache-2.0
#include "server/core/tensor_text.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>

namespace server {
namespace {

constexpr size_t kShown = 1000;

template <typename T>
T load(const std::byte* data) {
  T value;
  std::memcpy(&value, data, sizeof value);
  return value;
}

float from_half(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000) << 16;
  const uint32_t exponent = (half >> 10) & 0x1f, fraction = half & 0x3ff;
  if (exponent == 0) {  // zero and subnormal: fraction * 2^-24
    const float value = static_cast<float>(fraction) * 0x1p-24F;
    return sign ? -value : value;
  }
  const uint32_t bits = exponent == 31 ? 0x7f800000 : (exponent + 112) << 23;
  return std::bit_cast<float>(sign | bits | fraction << 13);
}

std::string element(amps_dtype dtype, const std::byte* data) {
  switch (dtype) {
    case AMPS_BOOL:
      return load<uint8_t>(data) ? "1" : "0";
    case AMPS_U8:
      return std::to_string(load<uint8_t>(data));
    case AMPS_U16:
      return std::to_string(load<uint16_t>(data));
    case AMPS_U32:
      return std::to_string(load<uint32_t>(data));
    case AMPS_U64:
      return std::to_string(load<uint64_t>(data));
    case AMPS_I8:
      return std::to_string(load<int8_t>(data));
    case AMPS_I16:
      return std::to_string(load<int16_t>(data));
    case AMPS_I32:
      return std::to_string(load<int32_t>(data));
    case AMPS_I64:
      return std::to_string(load<int64_t>(data));
    case AMPS_F16:
      return fmt::format("{:.6g}", from_half(load<uint16_t>(data)));
    case AMPS_BF16:
      return fmt::format("{:.6g}",
                         std::bit_cast<float>(static_cast<uint32_t>(load<uint16_t>(data)) << 16));
    case AMPS_F32:
      return fmt::format("{:.6g}", load<float>(data));
    case AMPS_F64:
      return fmt::format("{:.6g}", load<double>(data));
    default:
      return "?";
  }
}

}  // namespace

std::string tensor_text(amps_dtype dtype, std::span<const Buffer> buffers) {
  std::string text;
  size_t shown = 0;
  for (const Buffer& buffer : buffers) {
    size_t at = 0;
    while (shown < kShown && at < buffer.bytes) {
      size_t size = 0;
      std::string word;
      if (dtype == AMPS_STRING) {
        if (buffer.bytes - at < 4) break;
        size = load<uint32_t>(buffer.data + at);
        at += 4;
        if (size > buffer.bytes - at) break;
        word.append("\"")
            .append(reinterpret_cast<const char*>(buffer.data + at), size)
            .append("\"");
      } else {
        size = amps_dtype_size(dtype);
        if (size == 0 || size > buffer.bytes - at) break;
        word = element(dtype, buffer.data + at);
      }
      at += size;
      text.append(shown++ ? "," : "").append(word);
    }
  }
  return text;
}

}  // namespace server
