// SPDX-License-Identifier: Apache-2.0
#include "base/thread_pool.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <csignal>
#include <exception>
#include <memory>
#include <mutex>
#include <vector>

#include "base/denormals.h"
#include "base/fork.h"

#if defined(__x86_64__)
#include <immintrin.h>
#else
#include <thread>
#endif

namespace anymps {

namespace {

constexpr size_t kLine = 64;
constexpr int kRanges = 32;   // of tasks in a region, each of which has threads of its own
constexpr int kRegions = 64;  // at a time; a caller that finds none free works alone

// How long a thread looks for work before it sleeps, in nanoseconds.
constexpr int64_t kAfterRun = 40'000;    // after the last region, if no model runs
constexpr int64_t kLeastInRun = 50'000;  // while one does, by how long its waits were
constexpr int64_t kMostInRun = 1'000'000;
constexpr int64_t kOthersWait = 4'000;    // if others want the cores
constexpr int64_t kCallerWaits = 50'000;  // a caller, for tasks that others have begun
// A spinning thread that sees this much time pass at once had lost its core. For a while from then
// on others are taken to want the cores, if that happens to one thread in this many.
constexpr int64_t kLostCore = 200'000;
constexpr int64_t kOthersStay = 20'000'000;
constexpr int kThreadsForALoss = 4;

constexpr int kWakes = 2;  // of threads that sleep, by one thread at a time

constexpr double kFirstHandoff = 3000, kLeastHandoff = 500, kMostHandoff = 50'000;

int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

void pause() {
#if defined(__x86_64__)
  _mm_pause();
#else
  std::this_thread::yield();
#endif
}

void futex_wait(std::atomic<uint32_t>& word, uint32_t value) {
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, value, nullptr, nullptr, 0);
}

void futex_wake(std::atomic<uint32_t>& word) {
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

std::atomic<ThreadPool::Hook> hook_of_tests{nullptr};

inline void may_lose_core() {
  if (const auto hook = hook_of_tests.load(std::memory_order_relaxed)) [[unlikely]]
    hook();
}

// Tasks [begin, end) that nobody has taken, in one word. Words say all: whoever changes one takes
// a task of the region that is there now, even if it came to look for another one.
struct alignas(kLine) Range {
  std::atomic<uint64_t> word{0};

  static uint64_t make(uint64_t begin, uint64_t end) { return begin << 32 | end; }
  bool take(bool from_front, int64_t& task) {
    uint64_t now = word.load(std::memory_order_acquire);
    for (;;) {
      const uint64_t begin = now >> 32, end = now & 0xffffffff;
      if (begin >= end) return false;
      const uint64_t next = from_front ? make(begin + 1, end) : make(begin, end - 1);
      if (word.compare_exchange_weak(now, next, std::memory_order_acq_rel,
                                     std::memory_order_acquire)) {
        task = static_cast<int64_t>(from_front ? begin : end - 1);
        return true;
      }
    }
  }
};

}  // namespace

// Regions are the pool's and never freed, so that a thread that comes late finds one that is empty
// or another's, but never nothing.
struct alignas(kLine) ThreadPool::Region {
  std::atomic<Task> task{nullptr};
  std::atomic<void*> context{nullptr};
  std::atomic<FloatMode> mode{};  // of the caller: who helps computes as it does
  std::atomic<int> ranges{0};
  std::atomic<int64_t> opened{0};
  std::atomic<bool> failed{false};
  std::exception_ptr error;
  int index = 0;                                // in the pool; -1: the caller works alone
  alignas(kLine) std::atomic<int> seats{0};     // for helpers that may still join
  alignas(kLine) std::atomic<int64_t> left{0};  // tasks that are not done
  std::atomic<uint32_t> waiting{0};             // the caller sleeps on it
  Range range[kRanges];

  // Does tasks until none is left to take; the first range is that of `seat`.
  int64_t work(int seat) {
    const int count = std::max(ranges.load(std::memory_order_acquire), 1);
    int64_t done = 0, number;
    for (int i = 0; i < count; ++i) {
      Range& own = range[(seat + i) % count];
      while (own.take(i == 0, number)) {
        may_lose_core();
        call(number);
        ++done;
      }
    }
    if (done > 0) leave(done);
    return done;
  }

  void call(int64_t number) {
    if (failed.load(std::memory_order_relaxed)) return;
    mode.load(std::memory_order_relaxed).apply();
    try {
      task.load(std::memory_order_relaxed)(context.load(std::memory_order_relaxed), number);
    } catch (...) {
      if (!failed.exchange(true, std::memory_order_acq_rel)) error = std::current_exception();
    }
  }

  void leave(int64_t done) {
    may_lose_core();
    if (left.fetch_sub(done, std::memory_order_seq_cst) != done) return;
    if (waiting.exchange(0, std::memory_order_seq_cst) == 1) futex_wake(waiting);
  }
};

struct ThreadPool::State {
  struct alignas(kLine) Worker {
    explicit Worker(State& pool, int number) : state(pool), id(number) {}
    State& state;
    const int id;
    std::atomic<uint32_t> asleep{0};  // 1: sleeps on it
    int64_t spin = kLeastInRun;       // how long it looks for work while a model runs
    size_t next = 0;                  // the region to look at first, so that each has its turn
    bool woken = false;               // and not yet at work
    std::atomic<int64_t> helped{0};   // nanoseconds
  };

  alignas(kLine) std::atomic<uint64_t> open{0};   // regions with tasks to take, as bits
  std::atomic<uint32_t> news{0};                  // goes up with each of them
  alignas(kLine) std::atomic<uint64_t> taken{0};  // regions in use, as bits
  alignas(kLine) std::atomic<int> sleeping{0};
  std::atomic<int> started{0};
  std::atomic<int> size{1};
  std::atomic<int> runs{0};  // Awake
  // When the last loss of a core will be forgotten; each is remembered for kOthersStay.
  std::atomic<int64_t> losses{0};
  std::atomic<double> handoff{kFirstHandoff};
  std::atomic<int64_t> waited{0};  // nanoseconds, of callers
  std::mutex mutex;                // of the two that follow
  std::vector<bool> sleeps;
  std::vector<std::unique_ptr<Worker>> workers;
  Region regions[kRegions];

  // Of many threads, one now and then loses its core to nobody in particular.
  int64_t losses_that_tell() const {
    return std::max(1, size.load(std::memory_order_relaxed) / kThreadsForALoss);
  }
  bool others_want_cores(int64_t now) const {
    return losses.load(std::memory_order_relaxed) - now > (losses_that_tell() - 1) * kOthersStay;
  }
  // Called by threads that spin, with the time of their last look and of this one.
  void look_around(int64_t last, int64_t now) {
    if (now - last < kLostCore) return;
    const int64_t before = std::max(losses.load(std::memory_order_relaxed), now);
    const int64_t most = now + losses_that_tell() * kOthersStay;
    losses.store(std::min(before + kOthersStay, most), std::memory_order_relaxed);
  }

  Region* take_region() {
    uint64_t now = taken.load(std::memory_order_relaxed);
    while (~now != 0) {
      const int index = std::countr_one(now);
      if (taken.compare_exchange_weak(now, now | uint64_t{1} << index, std::memory_order_acq_rel)) {
        regions[index].index = index;
        return &regions[index];
      }
    }
    return nullptr;
  }

  void start(int wanted);
  void wake(int wanted);
  bool help(Worker& self);
  bool find_news(Worker& self, uint32_t seen);
  void sleep(Worker& self, uint32_t seen);
  void live(Worker& self);
};

// Where the system gives no more threads, the pool stays as small as it is.
void ThreadPool::State::start(int wanted) {
  if (started.load(std::memory_order_acquire) >= wanted) return;
  std::lock_guard lock(mutex);
  sigset_t all;
  sigfillset(&all);
  // Except those raised by the thread's own actions, such as touching a mapped file that was cut.
  for (const int own : {SIGBUS, SIGSEGV, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT})
    sigdelset(&all, own);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setsigmask_np(&attributes, &all);  // signals are the host's
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  for (int id = started.load(); id < wanted; ++id) {
    workers.push_back(std::make_unique<Worker>(*this, id));
    sleeps.push_back(false);
    const auto body = [](void* argument) -> void* {
      auto* self = static_cast<Worker*>(argument);
      self->state.live(*self);
      return nullptr;
    };
    pthread_t thread;
    if (pthread_create(&thread, &attributes, body, workers.back().get()) != 0) {
      workers.pop_back();
      sleeps.pop_back();
      break;
    }
    pthread_setname_np(thread, ("anymps-" + std::to_string(id + 1)).c_str());
    started.store(id + 1, std::memory_order_release);
  }
  pthread_attr_destroy(&attributes);
}

void ThreadPool::State::wake(int wanted) {
  Worker* woken[kWakes];
  int count = 0;
  {
    std::lock_guard lock(mutex);
    const auto most = std::min<size_t>(sleeps.size(), static_cast<size_t>(size.load() - 1));
    for (size_t id = 0; id < most && count < std::min(wanted, kWakes); ++id) {
      if (!sleeps[id]) continue;
      sleeps[id] = false;
      sleeping.fetch_sub(1);
      woken[count++] = workers[id].get();
    }
  }
  for (int i = 0; i < count; ++i) {
    woken[i]->asleep.store(0, std::memory_order_release);
    futex_wake(woken[i]->asleep);
  }
}

// Joins one region, if one has a seat and tasks.
bool ThreadPool::State::help(Worker& self) {
  const uint64_t all = open.load(std::memory_order_acquire);
  if (all == 0 || self.id >= size.load(std::memory_order_relaxed) - 1) return false;
  for (size_t i = 0; i < kRegions; ++i) {
    const size_t index = (self.next + i) % kRegions;
    if (!(all >> index & 1)) continue;
    Region& region = regions[index];
    int seats = region.seats.load(std::memory_order_relaxed);
    while (seats > 0 &&
           !region.seats.compare_exchange_weak(seats, seats - 1, std::memory_order_relaxed)) {
    }
    if (seats <= 0) continue;
    may_lose_core();
    const int64_t joined = now_ns();
    const auto took = static_cast<double>(joined - region.opened.load(std::memory_order_relaxed));
    const double before = handoff.load(std::memory_order_relaxed);
    handoff.store(std::clamp(before + (took - before) / 8, kLeastHandoff, kMostHandoff),
                  std::memory_order_relaxed);
    // Each that was woken wakes two more while there is room: a tree, not a queue at the caller.
    if (self.woken && seats > 1 && sleeping.load(std::memory_order_relaxed) > 0) wake(seats - 1);
    self.woken = false;
    self.next = index + 1;
    if (region.work(self.id + 1) == 0) continue;
    self.helped.store(self.helped.load(std::memory_order_relaxed) + now_ns() - joined,
                      std::memory_order_relaxed);
    return true;
  }
  return false;
}

// True: there is a new region. False: it was not worth waiting for.
bool ThreadPool::State::find_news(Worker& self, uint32_t seen) {
  const int64_t start = now_ns();
  int64_t last = start;
  bool in_run = false;
  for (int turn = 1;; ++turn) {
    if (news.load(std::memory_order_acquire) != seen) {
      if (in_run) self.spin = std::clamp(2 * (last - start), self.spin, kMostInRun);
      return true;
    }
    pause();
    if (turn % 16 != 0) continue;
    const int64_t now = now_ns();
    look_around(last, now);
    last = now;
    in_run = runs.load(std::memory_order_relaxed) > 0;
    const int64_t most = others_want_cores(now) ? kOthersWait : in_run ? self.spin : kAfterRun;
    if (now - start < most) continue;
    if (in_run) self.spin = std::max(self.spin / 2, kLeastInRun);
    return false;
  }
}

void ThreadPool::State::sleep(Worker& self, uint32_t seen) {
  const size_t at = self.id;
  {
    std::lock_guard lock(mutex);
    self.asleep.store(1);
    sleeps[at] = true;
    sleeping.fetch_add(1);
  }
  may_lose_core();
  if (news.load() != seen) {
    std::lock_guard lock(mutex);
    if (sleeps[at]) {
      sleeps[at] = false;
      sleeping.fetch_sub(1);
      self.asleep.store(0);
      return;
    }
  }
  while (self.asleep.load(std::memory_order_acquire) == 1) futex_wait(self.asleep, 1);
  self.woken = true;
}

void ThreadPool::State::live(Worker& self) {
  for (;;) {
    const uint32_t seen = news.load(std::memory_order_acquire);
    if (help(self)) continue;
    if (!find_news(self, seen)) sleep(self, seen);
  }
}

// The process's pool. It is never destroyed: its threads may outlive main.
struct PoolOfProcess {
  static PoolOfProcess& instance() {
    static auto* const process = new PoolOfProcess;
    return *process;
  }
  // In a child the threads are gone, and what they left half done stays where it is.
  void start_anew() {
    left_behind.push_back(pool.load());
    auto* fresh = new ThreadPool;
    fresh->resize(left_behind.back()->size());
    pool.store(fresh);
  }
  std::atomic<ThreadPool*> pool{new ThreadPool};
  std::vector<ThreadPool*> left_behind;  // of parents
  ForkMutex mutex{ForkMutex::kLong, [this](bool) { start_anew(); }};
};

ThreadPool::ThreadPool() : state_(new State) {}

ThreadPool& ThreadPool::get() {
  return *PoolOfProcess::instance().pool.load(std::memory_order_acquire);
}

int ThreadPool::size() const { return state_->size.load(std::memory_order_relaxed); }

void ThreadPool::resize(int threads) {
  state_->size.store(std::clamp(threads, 1, kMostThreads), std::memory_order_relaxed);
}

// Who takes it for too long opens no region, and nobody would measure it again: with each question
// a little of what is above the first guess is forgotten.
double ThreadPool::handoff_ns() const {
  const double lately = state_->handoff.load(std::memory_order_relaxed);
  if (lately > kFirstHandoff)
    state_->handoff.store(lately - (lately - kFirstHandoff) / 128, std::memory_order_relaxed);
  return lately;
}

ThreadPool::Times ThreadPool::times() const {
  int64_t helped = 0;
  {
    std::lock_guard lock(state_->mutex);
    for (const auto& worker : state_->workers)
      helped += worker->helped.load(std::memory_order_relaxed);
  }
  return {static_cast<double>(helped) * 1e-9, static_cast<double>(state_->waited.load()) * 1e-9};
}

void ThreadPool::set_hook(Hook hook) { hook_of_tests.store(hook); }

ThreadPool::Awake::Awake() : state_(ThreadPool::get().state_) { state_->runs.fetch_add(1); }
ThreadPool::Awake::~Awake() { state_->runs.fetch_sub(1); }

ThreadPool::Region* ThreadPool::begin(int64_t count, int threads, Task task, void* context) {
  State& s = *state_;
  const int helpers = static_cast<int>(std::min<int64_t>(std::min(threads, size()) - 1, count));
  Region* region = helpers > 0 && count < INT32_MAX ? s.take_region() : nullptr;
  if (!region) {
    for (int64_t i = 0; i < count; ++i) task(context, i);
    return nullptr;
  }
  s.start(helpers);
  const int ranges = std::min(helpers + 1, kRanges);
  region->task.store(task, std::memory_order_relaxed);
  region->context.store(context, std::memory_order_relaxed);
  region->mode.store(FloatMode::of_thread(), std::memory_order_relaxed);
  region->failed.store(false, std::memory_order_relaxed);
  region->error = nullptr;
  region->opened.store(now_ns(), std::memory_order_relaxed);
  region->left.store(count, std::memory_order_relaxed);
  region->ranges.store(ranges, std::memory_order_release);
  for (int64_t i = 0; i < ranges; ++i)
    region->range[i].word.store(Range::make(static_cast<uint64_t>(count * i / ranges),
                                            static_cast<uint64_t>(count * (i + 1) / ranges)),
                                std::memory_order_release);
  region->seats.store(helpers, std::memory_order_release);
  const uint64_t others = s.open.fetch_or(uint64_t{1} << region->index);
  s.news.fetch_add(1);
  may_lose_core();
  if (const int sleeping = s.sleeping.load(); sleeping > 0) {
    const int awake = others ? 0 : s.started.load(std::memory_order_relaxed) - sleeping;
    if (helpers > awake) s.wake(helpers - awake);
  }
  return region;
}

void ThreadPool::finish(Region* region) {
  if (!region) return;
  State& s = *state_;
  region->work(0);
  s.open.fetch_and(~(uint64_t{1} << region->index));
  if (region->left.load(std::memory_order_acquire) != 0) {
    const int64_t start = now_ns();
    int64_t last = start;
    for (int turn = 1; region->left.load(std::memory_order_acquire) != 0; ++turn) {
      pause();
      if (turn % 16 != 0) continue;
      const int64_t now = now_ns();
      s.look_around(last, now);
      last = now;
      if (now - start > (s.others_want_cores(now) ? kOthersWait : kCallerWaits)) break;
    }
    while (region->left.load() != 0) {
      region->waiting.store(1);
      may_lose_core();
      if (region->left.load() == 0) break;
      futex_wait(region->waiting, 1);
    }
    region->waiting.store(0);
    s.waited.fetch_add(now_ns() - start, std::memory_order_relaxed);
  }
  const std::exception_ptr error = std::move(region->error);
  region->error = nullptr;
  s.taken.fetch_and(~(uint64_t{1} << region->index), std::memory_order_release);
  if (error) std::rethrow_exception(error);
}

void ThreadPool::run(int64_t count, int threads, Task task, void* context) {
  // The caller is one of those who may take a task.
  finish(begin(count, static_cast<int>(std::min<int64_t>(threads, count)), task, context));
}

}  // namespace anymps
