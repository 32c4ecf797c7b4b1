// SPDX-License-Identifier: Apache-2.0
#include "base/checksum.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace anymps {

namespace {

// Odd, so that every step can be undone: no change of one word is ever lost.
constexpr uint64_t kSpread = 0xc2b2ae3d27d4eb4f, kMultiplier = 0x9fb21c651e98df25;

uint64_t word(const unsigned char* at) {
  uint64_t value = 0;
  std::memcpy(&value, at, 8);
  if constexpr (std::endian::native == std::endian::big) value = __builtin_bswap64(value);
  return value;
}

uint64_t step(uint64_t state, uint64_t input) {
  return std::rotl(state ^ (input * kSpread), 31) * kMultiplier;
}

uint64_t mix(uint64_t state) {
  state = (state ^ (state >> 32)) * kMultiplier;
  return state ^ (state >> 29);
}

}  // namespace

void Checksum::block(const unsigned char* at) {
  for (size_t i = 0; i < kLanes; ++i) lanes_[i] = step(lanes_[i], word(at + 8 * i));
}

Checksum& Checksum::add(const void* data, size_t bytes) {
  if (bytes == 0) return *this;
  const auto* at = static_cast<const unsigned char*>(data);
  total_ += bytes;
  if (tail_bytes_ > 0) {
    const size_t taken = std::min(bytes, kBlock - tail_bytes_);
    std::memcpy(tail_ + tail_bytes_, at, taken);
    tail_bytes_ += taken;
    at += taken;
    bytes -= taken;
    if (tail_bytes_ < kBlock) return *this;
    block(tail_);
    tail_bytes_ = 0;
  }
  for (; bytes >= kBlock; at += kBlock, bytes -= kBlock) block(at);
  if (bytes > 0) std::memcpy(tail_, at, bytes);
  tail_bytes_ = bytes;
  return *this;
}

uint64_t Checksum::value() const {
  Checksum last = *this;
  if (tail_bytes_ > 0) {
    std::memset(last.tail_ + tail_bytes_, 0, kBlock - tail_bytes_);
    last.block(last.tail_);
  }
  uint64_t result = mix(total_);
  for (uint64_t lane : last.lanes_) result = mix(step(result, lane));
  return result;
}

uint64_t checksum(const void* data, size_t bytes) { return Checksum().add(data, bytes).value(); }

}  // namespace anymps
