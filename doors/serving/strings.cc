// SPDX-License-Identifier: Apache-2.0
#include "serving/strings.h"

#include <cstring>

#include "serving/string_bytes.h"

namespace anymps::serving {
namespace {

constexpr size_t kLengthBytes = sizeof(uint32_t);

std::string join(std::span<const Piece> pieces) {
  std::string bytes;
  for (const Piece& piece : pieces) bytes.append(static_cast<const char*>(piece.data), piece.bytes);
  return bytes;
}

template <typename Fn>
bool for_each_string(std::string_view bytes, Fn&& fn) {
  while (!bytes.empty()) {
    const std::optional<std::string_view> text = take_string(bytes);
    if (!text) return false;
    fn(*text);
  }
  return true;
}

std::string_view view(const Piece& piece) {
  return {static_cast<const char*>(piece.data), piece.bytes};
}

std::string_view element(const amps_tensor* tensor, int64_t index) {
  const char* data = nullptr;
  size_t bytes = 0;
  amps::check(amps_tensor_string(tensor, index, &data, &bytes));
  return {data, bytes};
}

}  // namespace

bool parse_strings(std::span<const Piece> pieces, Strings& strings,
                   std::deque<std::string>& joined) {
  if (pieces.empty()) return true;
  if (pieces.size() > 1) joined.push_back(join(pieces));
  return for_each_string(pieces.size() > 1 ? std::string_view(joined.back()) : view(pieces[0]),
                         [&](std::string_view text) {
                           strings.data.push_back(text.data());
                           strings.sizes.push_back(text.size());
                         });
}

std::optional<int64_t> count_strings(std::span<const Piece> pieces) {
  std::string joined;
  if (pieces.size() > 1) joined = join(pieces);
  int64_t count = 0;
  const std::string_view bytes = pieces.size() == 1 ? view(pieces[0]) : std::string_view(joined);
  if (!for_each_string(bytes, [&](std::string_view) { ++count; })) return std::nullopt;
  return count;
}

size_t serialized_bytes(const amps_tensor* tensor, int64_t first, int64_t count) {
  size_t bytes = 0;
  for (int64_t i = first; i < first + count; ++i) {
    const size_t size = element(tensor, i).size();
    if (size > UINT32_MAX)
      throw Error(Code::kInternal, "a string of 4 GiB and more cannot be sent");
    bytes += kLengthBytes + size;
  }
  return bytes;
}

void serialize_strings(const amps_tensor* tensor, int64_t first, int64_t count, void* to) {
  char* next = static_cast<char*>(to);
  for (int64_t i = first; i < first + count; ++i) {
    const std::string_view text = element(tensor, i);
    const auto size = static_cast<uint32_t>(text.size());
    std::memcpy(next, &size, kLengthBytes);
    if (size) std::memcpy(next + kLengthBytes, text.data(), size);
    next += kLengthBytes + size;
  }
}

}  // namespace anymps::serving
