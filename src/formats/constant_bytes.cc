// SPDX-License-Identifier: Apache-2.0
#include "formats/constant_bytes.h"

#include <cstring>

#include "base/narrow.h"
#include "memory/pages.h"

namespace anymps {

namespace {

constexpr size_t kSmall = 16 << 10;  // copied at once: not worth a recipe

// Several elements in a byte: one byte for each.
void unpack(std::string_view data, int bits, DType dtype, int64_t count, std::byte* out) {
  const int in_byte = 8 / bits;
  for (int64_t i = 0; i < count; ++i) {
    const auto byte = static_cast<uint8_t>(data[i / in_byte]);
    const int code = byte >> (i % in_byte * bits) & ((1 << bits) - 1);
    out[i] = static_cast<std::byte>(contains(kNarrowInt, dtype) ? wrap_narrow(dtype, code) : code);
  }
}

}  // namespace

ConstantPtr constant_from(DType dtype, Shape shape, std::string_view data,
                          std::shared_ptr<const void> owner, bool mapped) {
  if (data.size() <= kSmall || !owner)
    return Constant::copy(dtype, std::move(shape),
                          std::as_bytes(std::span(data.data(), data.size())));
  const size_t element = size_of(real_dtype(dtype));
  if (reinterpret_cast<uintptr_t>(data.data()) % element == 0)
    return Constant::view(dtype, std::move(shape), data.data(), std::move(owner), mapped);
  return Constant::lazy(dtype, std::move(shape),
                        [data, owner = std::move(owner), mapped](std::byte* out) {
                          std::memcpy(out, data.data(), data.size());
                          if (mapped) give_back_pages(data.data(), data.size());
                        });
}

ConstantPtr packed_constant_from(DType dtype, Shape shape, int bits, std::string_view data,
                                 std::shared_ptr<const void> owner) {
  const int64_t count = element_count(shape);
  if (data.size() > kSmall && owner)
    return Constant::lazy(dtype, std::move(shape),
                          [data, dtype, bits, count, owner = std::move(owner)](std::byte* out) {
                            unpack(data, bits, dtype, count, out);
                          });
  std::vector<std::byte> bytes(count);
  unpack(data, bits, dtype, count, bytes.data());
  return Constant::copy(dtype, std::move(shape), bytes);
}

}  // namespace anymps
