// SPDX-License-Identifier: Apache-2.0
#include "memory/raw_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>

#include "memory/pages.h"
#include "memory/system_memory.h"

namespace anymps {

namespace {

char* map(size_t bytes) {
  void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return data == MAP_FAILED ? nullptr : static_cast<char*>(data);
}

// From the begin of a large page on.
char* map_aligned(size_t bytes) {
  static const auto small = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const size_t page = large_page(), whole = (bytes + small - 1) / small * small;
  char* data = map(whole + page);
  if (!data) return nullptr;
  const size_t before = (page - reinterpret_cast<uintptr_t>(data) % page) % page;
  if (before > 0) munmap(data, before);
  munmap(data + before + whole, page - before);  // page - before is never 0
  use_large_pages(data + before, whole);
  return data + before;
}

}  // namespace

void* HostMemory::allocate(size_t bytes) {
  if (bytes > capacity()) return nullptr;
  char* data = nullptr;
  if (large_page() > 0 && bytes >= large_page()) data = map_aligned(bytes);
  return data ? data : map(bytes);
}

void HostMemory::release(void* data, size_t bytes) noexcept { munmap(data, bytes); }

size_t HostMemory::capacity() const { return system_memory(); }

}  // namespace anymps
