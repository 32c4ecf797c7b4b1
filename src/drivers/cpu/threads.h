// SPDX-License-Identifier: Apache-2.0
// The one way a CPU kernel uses several threads. It runs on OpenMP, as oneDNN does, so that one
// pool of threads serves both. How many threads there are is set for the calling thread by
// Driver::use_threads; how many are worth waking is decided here, from the cost of the work.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <type_traits>

namespace anymps {

// Work below this many nanoseconds stays on the calling thread.
inline constexpr double kParallelThreshold = 20e3;

int current_threads();  // that a parallel_for of the calling thread may use
// Calls fn(0) … fn(count - 1), each on the next thread that is free. The first exception is thrown
// to the caller; after it no more calls begin.
void parallel_calls(size_t count, int threads, const std::function<void(size_t)>& fn);

namespace detail {
using RangeFn = void (*)(void* context, int64_t begin, int64_t end);
void parallel_ranges(int64_t begin, int64_t end, int threads, RangeFn fn, void* context);
}  // namespace detail

// Calls fn(b, e) for ranges that together are [begin, end). `ns` is what one item costs. The ranges
// depend on the number of threads, so an item's result must not depend on the range it is in.
// The first exception of fn is thrown to the caller.
template <typename Fn>
void parallel_for(int64_t begin, int64_t end, double ns, Fn&& fn) {
  if (end <= begin) return;
  const double total = static_cast<double>(end - begin) * ns;
  if (end - begin == 1 || total < kParallelThreshold) {
    fn(begin, end);
    return;
  }
  const double worth = std::min(total / (kParallelThreshold / 2), 4096.0);
  const int threads = static_cast<int>(
      std::min<int64_t>({current_threads(), static_cast<int64_t>(worth), end - begin}));
  if (threads <= 1) {
    fn(begin, end);
    return;
  }
  using F = std::remove_reference_t<Fn>;
  detail::parallel_ranges(
      begin, end, threads,
      [](void* context, int64_t b, int64_t e) { (*static_cast<F*>(context))(b, e); },
      const_cast<void*>(static_cast<const void*>(&fn)));
}

}  // namespace anymps
