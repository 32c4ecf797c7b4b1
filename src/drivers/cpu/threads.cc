// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/threads.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/thread_pool.h"

namespace anymps {
namespace {

thread_local int thread_limit = 0;

// Tasks for each thread: enough that one who lost its core for a while holds up little.
constexpr int64_t kTasksEach = 4;

class LimitScope {
 public:
  explicit LimitScope(int threads) : before_(exchange_thread_limit(threads)) {}
  ~LimitScope() { exchange_thread_limit(before_); }
  LimitScope(const LimitScope&) = delete;
  LimitScope& operator=(const LimitScope&) = delete;

 private:
  int before_;
};

// How much longer this core takes than the one that the kernels' costs were measured on: by a chain
// of multiplications, each of which waits for the one before. Best of a few, since others may take
// the core away.
double slowness() {
  static const double factor = [] {
    constexpr double kNominal = 1362;  // nanoseconds
    using Clock = std::chrono::steady_clock;
    double best = 4 * kNominal;
    for (int turn = 0; turn < 5; ++turn) {
      const auto start = Clock::now();
      uint64_t x = 1;
      for (int i = 0; i < 1000; ++i) {
        x = (x ^ x >> 15) * 0x5bd1e995u;
        asm volatile("" : "+r"(x));
      }
      best = std::min(best, std::chrono::duration<double, std::nano>(Clock::now() - start).count());
    }
    return std::max(best / kNominal, 0.5);
  }();
  return factor;
}

// What tasks leave of the threads for the regions inside each of them.
int share(int threads, int64_t tasks) {
  return static_cast<int>(std::max<int64_t>(1, threads / std::max<int64_t>(1, tasks)));
}

}  // namespace

int current_threads() {
  const int most = ThreadPool::get().size();
  return thread_limit > 0 ? std::min(thread_limit, most) : most;
}

int exchange_thread_limit(int threads) { return std::exchange(thread_limit, threads); }

void parallel_calls(size_t count, int threads, const std::function<void(size_t)>& fn) {
  struct Calls {
    const std::function<void(size_t)>& fn;
    int inner;
  } calls{fn, share(threads, static_cast<int64_t>(count))};
  ThreadPool::get().run(
      static_cast<int64_t>(count), threads,
      [](void* context, int64_t task) {
        const Calls& own = *static_cast<Calls*>(context);
        const LimitScope limit(own.inner);
        own.fn(task);
      },
      &calls);
}

namespace detail {

void parallel_ranges(int64_t begin, int64_t end, double ns, RangeFn fn, void* context) {
  ThreadPool& pool = ThreadPool::get();
  const int64_t items = end - begin;
  // Another thread must save more than it costs.
  const double total = static_cast<double>(items) * ns * slowness(), handoff = pool.handoff_ns();
  const double worth = std::min(total / (2 * handoff), static_cast<double>(kMostThreads));
  const int threads =
      static_cast<int>(std::min<int64_t>({current_threads(), static_cast<int64_t>(worth), items}));
  if (threads <= 1) return fn(context, begin, end);
  struct Ranges {
    int64_t begin, items, tasks;
    RangeFn fn;
    void* context;
    int inner;
  } ranges{begin, items, 0, fn, context, share(current_threads(), items)};
  const auto most = static_cast<int64_t>(std::min(total / (handoff / 2), 1e6));
  ranges.tasks = std::clamp<int64_t>(most, threads, std::min(items, threads * kTasksEach));
  pool.run(
      ranges.tasks, threads,
      [](void* argument, int64_t task) {
        const Ranges& r = *static_cast<Ranges*>(argument);
        const LimitScope limit(r.inner);
        r.fn(r.context, r.begin + r.items * task / r.tasks,
             r.begin + r.items * (task + 1) / r.tasks);
      },
      &ranges);
}

}  // namespace detail
}  // namespace anymps
