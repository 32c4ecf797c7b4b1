// SPDX-License-Identifier: Apache-2.0
// The one way a CPU kernel uses several threads: tasks of the process's pool (base/thread_pool.h).
// How many threads there may be is set for the calling thread by Driver::use_threads; how many are
// worth waking, and how large the tasks are, is decided here, from the cost of the work.
#pragma once

#include <cstdint>
#include <functional>
#include <type_traits>

namespace anymps {

int current_threads();  // that a parallel_for of the calling thread may use
// Sets it for the calling thread and returns what it was; 0: as many as the pool has.
int exchange_thread_limit(int threads);

// Calls fn(0) … fn(count - 1), each on the next thread that is free. The first exception is thrown
// to the caller; after it no more calls begin. A call's own regions have its share of the threads.
void parallel_calls(size_t count, int threads, const std::function<void(size_t)>& fn);

namespace detail {
using RangeFn = void (*)(void* context, int64_t begin, int64_t end);
void parallel_ranges(int64_t begin, int64_t end, double ns, RangeFn fn, void* context);
// Work below this many nanoseconds is not worth a look at the pool.
inline constexpr double kOneThread = 4e3;
}  // namespace detail

// Calls fn(b, e) for ranges that together are [begin, end). `ns` is what one item costs. The ranges
// depend on the number of threads, so an item's result must not depend on the range it is in.
// The first exception of fn is thrown to the caller.
template <typename Fn>
void parallel_for(int64_t begin, int64_t end, double ns, Fn&& fn) {
  if (end <= begin) return;
  if (end - begin == 1 || static_cast<double>(end - begin) * ns < detail::kOneThread) {
    fn(begin, end);
    return;
  }
  using F = std::remove_reference_t<Fn>;
  detail::parallel_ranges(
      begin, end, ns,
      [](void* context, int64_t b, int64_t e) { (*static_cast<F*>(context))(b, e); },
      const_cast<void*>(static_cast<const void*>(&fn)));
}

}  // namespace anymps
