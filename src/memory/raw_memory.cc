// SPDX-License-Identifier: Apache-2.0
#include "memory/raw_memory.h"

#include <sys/mman.h>

#include "memory/system_memory.h"

namespace anymps {

void* HostMemory::allocate(size_t bytes) {
  if (bytes > capacity()) return nullptr;
  void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return data == MAP_FAILED ? nullptr : data;
}

void HostMemory::release(void* data, size_t bytes) noexcept { munmap(data, bytes); }

size_t HostMemory::capacity() const { return system_memory(); }

}  // namespace anymps
