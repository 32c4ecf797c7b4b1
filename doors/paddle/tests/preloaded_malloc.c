/* SPDX-License-Identifier: Apache-2.0
 * A malloc to be preloaded, as jemalloc is, that ends the process when it is to free what it has
 * not allocated. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static char* base;
static size_t used;
enum { kHeader = 16 };
static const size_t kSize = (size_t)32 << 30; /* addresses, not memory; nothing is used twice */

static void* allocate(size_t bytes, size_t alignment) {
  if (!base) {
    base = mmap(NULL, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                -1, 0);
  }
  if (alignment < kHeader) alignment = kHeader;
  const size_t taken = (bytes + alignment + 2 * kHeader) & ~(size_t)(kHeader - 1);
  const size_t at = __atomic_fetch_add(&used, taken, __ATOMIC_RELAXED);
  size_t* data = (size_t*)(((size_t)base + at + kHeader + alignment - 1) & ~(alignment - 1));
  data[-1] = bytes;
  return data;
}

static void check(const void* data) {
  static const char kMessage[] = "preloaded_malloc: this was allocated by another\n";
  if ((const char*)data >= base && (const char*)data < base + kSize) return;
  if (write(2, kMessage, sizeof(kMessage) - 1) >= 0) abort();
}

void* malloc(size_t bytes) { return allocate(bytes, kHeader); }
void* calloc(size_t count, size_t bytes) { return allocate(count * bytes, kHeader); }
void* memalign(size_t alignment, size_t bytes) { return allocate(bytes, alignment); }
void* aligned_alloc(size_t alignment, size_t bytes) { return allocate(bytes, alignment); }
int posix_memalign(void** data, size_t alignment, size_t bytes) {
  *data = allocate(bytes, alignment);
  return 0;
}
size_t malloc_usable_size(void* data) { return data ? ((size_t*)data)[-1] : 0; }
void free(void* data) {
  if (data) check(data);
}
void* realloc(void* data, size_t bytes) {
  if (data) check(data);
  void* moved = malloc(bytes);
  const size_t held = malloc_usable_size(data);
  if (data) memcpy(moved, data, held < bytes ? held : bytes);
  return moved;
}
