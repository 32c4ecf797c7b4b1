// SPDX-License-Identifier: Apache-2.0
// The bytes of a `.mps` file: numbers that writer and reader agree on, and the two cursors that
// put and take little-endian values. The reader fails before it would leave its bytes.
#pragma once

#include <bit>
#include <cstring>
#include <string>
#include <string_view>

#include "base/error.h"

namespace anymps::mps {

inline constexpr std::string_view kMagic("\x89MPS\r\n\x1a\n", 8);
inline constexpr size_t kHeaderBytes = 64, kSectionBytes = 32, kAlignment = 64;
inline constexpr uint32_t kNoValue = 0xffffffff;
inline constexpr int kMaxNesting = 16;  // graphs inside attributes
inline constexpr uint32_t kMaxSections = 4096;
inline constexpr uint32_t kMaxRank = 64;

// These numbers are part of the format and never change.
enum class SectionKind : uint32_t { kGraph = 1, kConstants = 2, kMetadata = 3, kData = 4 };
enum class DimTag : uint8_t { kNumber = 0, kSymbol = 1 };
// Besides the flag, a value's byte holds its container, from bit kContainerShift on.
enum ValueFlag : uint8_t { kRanked = 1 };
inline constexpr int kContainerShift = 1;

struct Section {
  SectionKind kind;
  uint64_t offset = 0, bytes = 0, checksum = 0;
};

class ByteWriter {
 public:
  void u8(uint8_t value) { bytes_ += static_cast<char>(value); }
  void u32(uint32_t value) { number(value); }
  void u64(uint64_t value) { number(value); }
  void i64(int64_t value) { number(static_cast<uint64_t>(value)); }
  void f64(double value) { number(std::bit_cast<uint64_t>(value)); }
  void count(size_t value) {
    require(value < kNoValue, "[mps] {} items are more than the format holds", value);
    u32(static_cast<uint32_t>(value));
  }
  void text(std::string_view value) {
    count(value.size());
    bytes_ += value;
  }
  void raw(std::string_view value) { bytes_ += value; }
  const std::string& bytes() const { return bytes_; }

 private:
  template <typename T>
  void number(T value) {
    for (size_t i = 0; i < sizeof(T); ++i) u8(static_cast<uint8_t>(value >> (8 * i)));
  }
  std::string bytes_;
};

// Failures carry the reason alone; the caller adds the file and the place.
class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : bytes_(bytes) {}

  uint8_t u8() { return static_cast<uint8_t>(take(1)[0]); }
  uint32_t u32() { return number<uint32_t>(); }
  uint64_t u64() { return number<uint64_t>(); }
  int64_t i64() { return static_cast<int64_t>(number<uint64_t>()); }
  double f64() { return std::bit_cast<double>(number<uint64_t>()); }
  // A number of items, each of at least `least` bytes: a lie is noticed before memory is taken.
  uint32_t count(size_t least) {
    const uint32_t items = u32();
    if (items > left() / least)
      fail(Code::kCorrupt, "{} items are promised, {} bytes are left", items, left());
    return items;
  }
  std::string_view text() { return take(count(1)); }
  std::string_view take(size_t bytes) {
    if (bytes > left()) fail(Code::kCorrupt, "{} bytes are needed, {} are left", bytes, left());
    at_ += bytes;
    return bytes_.substr(at_ - bytes, bytes);
  }
  size_t left() const { return bytes_.size() - at_; }

 private:
  template <typename T>
  T number() {
    const std::string_view bytes = take(sizeof(T));
    T value = 0;
    for (size_t i = 0; i < sizeof(T); ++i)
      value |= static_cast<T>(static_cast<unsigned char>(bytes[i])) << (8 * i);
    return value;
  }
  std::string_view bytes_;
  size_t at_ = 0;
};

}  // namespace anymps::mps
