// SPDX-License-Identifier: Apache-2.0
#include "memory/pages.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>

namespace anymps {

namespace {

constexpr size_t kFewBytes = 64 << 10;  // as many as one fault of a mapped file brings
// Of Linux 5.14; older headers lack the names, older kernels answer with an error.
constexpr int kPopulateRead = 22, kPopulateWrite = 23;

// The pages that lie in the range as a whole.
void advise(const void* data, size_t bytes, int advice) {
  static const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto first = reinterpret_cast<uintptr_t>(data), last = first + bytes;
  const uintptr_t begin = (first + page - 1) / page * page, end = last / page * page;
  if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, advice);
}

}  // namespace

void map_for_reading(const void* data, size_t bytes) {
  if (bytes > kFewBytes) advise(data, bytes, kPopulateRead);
}

void map_for_writing(void* data, size_t bytes) {
  if (bytes > kFewBytes / 4) advise(data, bytes, kPopulateWrite);
}

void give_back_pages(const void* data, size_t bytes) { advise(data, bytes, MADV_DONTNEED); }

}  // namespace anymps
