// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/threads.h"

#include <omp.h>

#include <atomic>
#include <exception>

// ThreadSanitizer does not see the synchronization inside libgomp.
#if defined(__SANITIZE_THREAD__)
#define ANYMPS_ONE_THREAD 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define ANYMPS_ONE_THREAD 1
#endif
#endif

namespace anymps {
namespace {

// An exception must not leave a parallel region: the first one is thrown after it.
class FirstError {
 public:
  void keep() {
    if (!taken_.test_and_set()) error_ = std::current_exception();
  }
  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  std::atomic_flag taken_ = ATOMIC_FLAG_INIT;
  std::exception_ptr error_;
};

}  // namespace

int current_threads() {
#ifdef ANYMPS_ONE_THREAD
  return 1;
#else
  return omp_in_parallel() ? 1 : omp_get_max_threads();
#endif
}

void parallel_calls(size_t count, int threads, const std::function<void(size_t)>& fn) {
#ifdef ANYMPS_ONE_THREAD
  threads = 1;
#endif
  if (count == 0) return;
  std::atomic<size_t> next = 0;
  FirstError error;
  const int team = static_cast<int>(std::min(static_cast<size_t>(threads), count));
#pragma omp parallel num_threads(team)
  for (size_t i = next++; i < count; i = next++) {
    try {
      fn(i);
    } catch (...) {
      next = count;
      error.keep();
    }
  }
  error.rethrow();
}

namespace detail {

void parallel_ranges(int64_t begin, int64_t end, int threads, RangeFn fn, void* context) {
  FirstError error;
#pragma omp parallel num_threads(threads)
  {
    const int64_t parts = omp_get_num_threads(), part = omp_get_thread_num();
    const int64_t items = end - begin, each = items / parts, rest = items % parts;
    const int64_t first = begin + part * each + std::min(part, rest);
    const int64_t last = first + each + (part < rest ? 1 : 0);
    try {
      if (first < last) fn(context, first, last);
    } catch (...) {
      error.keep();
    }
  }
  error.rethrow();
}

}  // namespace detail
}  // namespace anymps
