// SPDX-License-Identifier: Apache-2.0
#include "memory/raw_memory.h"

#include <sys/mman.h>

namespace anymps {

void* HostMemory::allocate(size_t bytes) {
  void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return data == MAP_FAILED ? nullptr : data;
}

void HostMemory::release(void* data, size_t bytes) noexcept { munmap(data, bytes); }

}  // namespace anymps
