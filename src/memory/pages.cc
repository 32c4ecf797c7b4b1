// SPDX-License-Identifier: Apache-2.0
#include "memory/pages.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <ctime>
#include <fstream>
#include <string>

#include "memory/system_memory.h"

namespace anymps {

namespace {

constexpr size_t kFewBytes = 16 << 10;  // as quick with a fault for each page
// Of Linux 5.14; older headers lack the name, older kernels answer with an error.
constexpr int kPopulateWrite = 23;

// Ordinary pages take 0.2 to 0.7 ms for 2 MB, a large one 0.1 where it is at hand, 1.4 to 4 where
// the host has to find it.
constexpr double kSlowMs = 1;
std::atomic<bool> was_slow{false};

uintptr_t small_page() {
  static const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  return page;
}

// The pages that lie in the range as a whole.
void advise(const void* data, size_t bytes, int advice) {
  const uintptr_t page = small_page();
  const auto first = reinterpret_cast<uintptr_t>(data), last = first + bytes;
  const uintptr_t begin = (first + page - 1) / page * page, end = last / page * page;
  if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, advice);
}

// Of this thread: what others do with its core meanwhile is not the page's fault.
double processor_ms() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) * 1e-6;
}

// Whether large pages are worth a try: at once, or where the host takes free memory back, so that
// most of them are slow, for a process that takes as much memory that one slow page is a small
// loss.
constexpr size_t kMuch = 64 << 20;
std::atomic<size_t> taken{0};

bool has_large_pages() {
  return large_page() > 0 && !was_slow.load(std::memory_order_relaxed) &&
         (!host_takes_memory_back() || taken.load(std::memory_order_relaxed) > kMuch);
}

// Whether the system would put large pages where they are not worth a try: it was asked for them
// before, or gives them unasked.
bool may_be_large() {
  static const bool unasked = [] {
    std::string ways;
    std::getline(std::ifstream("/sys/kernel/mm/transparent_hugepage/enabled"), ways);
    return ways.find("[always]") != std::string::npos;
  }();
  return large_page() > 0 && (unasked || was_slow.load(std::memory_order_relaxed));
}

// Maps a large page, or a part of one; false: that took too long.
bool map_quickly(const void* data, size_t bytes) {
  const double start = processor_ms();
  advise(data, bytes, kPopulateWrite);
  if (processor_ms() - start <= kSlowMs) return true;
  was_slow = true;
  return false;
}

}  // namespace

void map_for_writing(void* data, size_t bytes) {
  if (bytes <= kFewBytes) return;
  auto* at = static_cast<char*>(data);
  char* const end = at + bytes;
  while (at < end && has_large_pages()) {
    const size_t left = large_page() - reinterpret_cast<uintptr_t>(at) % large_page();
    char* const next = at + std::min(left, static_cast<size_t>(end - at));
    map_quickly(at, static_cast<size_t>(next - at));
    at = next;
  }
  if (at == end) return;
  if (may_be_large()) advise(at, static_cast<size_t>(end - at), MADV_NOHUGEPAGE);
  advise(at, static_cast<size_t>(end - at), kPopulateWrite);
}

void give_back_pages(const void* data, size_t bytes) { advise(data, bytes, MADV_DONTNEED); }

size_t large_page() {
  static const size_t bytes = [] {
    constexpr size_t kMost = size_t{4} << 20;  // larger ones would waste memory
    size_t size = 0;
    std::ifstream("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size") >> size;
    return size > small_page() && size <= kMost ? size : 0;
  }();
  return bytes;
}

void use_large_pages(void* data, size_t bytes) {
  if (bytes < large_page()) return;
  taken.fetch_add(bytes, std::memory_order_relaxed);
  if (!has_large_pages()) return;
  advise(data, bytes, MADV_HUGEPAGE);
  if (!map_quickly(data, large_page())) advise(data, bytes, MADV_NOHUGEPAGE);
}

}  // namespace anymps
