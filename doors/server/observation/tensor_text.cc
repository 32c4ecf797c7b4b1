// SPDX-License-Identifier: Apache-2.0
#include "server/observation/tensor_text.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>
#include <type_traits>

#include "serving/datatype.h"
#include "serving/string_bytes.h"

namespace anymps::server {
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
  if (dtype == AMPS_BOOL) return load<uint8_t>(data) ? "1" : "0";
  if (dtype == AMPS_F16) return fmt::format("{:.6g}", from_half(load<uint16_t>(data)));
  if (dtype == AMPS_BF16)
    return fmt::format("{:.6g}",
                       std::bit_cast<float>(static_cast<uint32_t>(load<uint16_t>(data)) << 16));
  std::string text = "?";
  serving::with_number_type(dtype, [&]<typename T>() {
    if constexpr (std::is_floating_point_v<T>)
      text = fmt::format("{:.6g}", load<T>(data));
    else
      text = std::to_string(load<T>(data));
  });
  return text;
}

}  // namespace

std::string tensor_text(amps_dtype dtype, std::span<const Buffer> buffers) {
  const size_t size = amps_dtype_size(dtype);
  std::string text;
  size_t shown = 0;
  for (const Buffer& buffer : buffers) {
    std::string_view left(reinterpret_cast<const char*>(buffer.data), buffer.bytes);
    while (shown < kShown && !left.empty()) {
      std::string word;
      if (dtype == AMPS_STRING) {
        const std::optional<std::string_view> next = serving::take_string(left);
        if (!next) break;
        word.append("\"").append(*next).append("\"");
      } else {
        if (size == 0 || size > left.size()) break;
        word = element(dtype, reinterpret_cast<const std::byte*>(left.data()));
        left.remove_prefix(size);
      }
      text.append(shown++ ? "," : "").append(word);
    }
  }
  return text;
}

}  // namespace anymps::server
