// SPDX-License-Identifier: Apache-2.0
// A 64-bit checksum against damage, not against attackers: fast enough to check the weights of a
// model when it is loaded, and sure to notice any change inside one 8-byte word.
#pragma once

#include <cstddef>
#include <cstdint>

namespace anymps {

class Checksum {
 public:
  Checksum& add(const void* data, size_t bytes);
  uint64_t value() const;  // of what was added so far; more may follow

 private:
  void block(const unsigned char* at);

  static constexpr size_t kLanes = 4, kBlock = 8 * kLanes;
  uint64_t lanes_[kLanes] = {0x9e3779b97f4a7c15, 0xbf58476d1ce4e5b9, 0x94d049bb133111eb,
                             0xd6e8feb86659fd93};
  uint64_t total_ = 0;
  unsigned char tail_[kBlock] = {};
  size_t tail_bytes_ = 0;
};

uint64_t checksum(const void* data, size_t bytes);

}  // namespace anymps
