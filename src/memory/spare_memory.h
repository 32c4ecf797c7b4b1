// SPDX-License-Identifier: Apache-2.0
// Memory for bytes that are made to be packed and then dropped: one folded weight after the other.
// What is dropped is kept for the next, because pages that the system has to hand out and clear
// again cost more than what is written to them.
#pragma once

#include <cstddef>
#include <memory>

namespace anymps {

// Aligned to 64 bytes; null when there is no memory. What is in it is anything.
std::shared_ptr<std::byte> spare_bytes(size_t size);
// While one is alive, large blocks that are dropped wait for the next spare_bytes.
class KeepSpareMemory {
 public:
  KeepSpareMemory();
  ~KeepSpareMemory();
  KeepSpareMemory(const KeepSpareMemory&) = delete;
  KeepSpareMemory& operator=(const KeepSpareMemory&) = delete;
};

}  // namespace anymps
