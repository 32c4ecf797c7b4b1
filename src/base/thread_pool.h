// SPDX-License-Identifier: Apache-2.0
// The process's threads that compute. Work is a region of many small tasks; whoever has a core
// takes the next one: the caller always works, and waits only for tasks that others have begun.
// Threads are made when a region first wants them, spin for a while after one, and then sleep. A
// forked child starts with a new pool. docs/design.md, "Threads", has the reasons.
#pragma once

#include <cstdint>

namespace anymps {

inline constexpr int kMostThreads = 1024;

class ThreadPool {
 public:
  using Task = void (*)(void* context, int64_t task);
  struct State;

  static ThreadPool& get();

  // Calls task(context, 0) … task(context, count - 1), each once, on the calling thread and at most
  // threads - 1 others, which round and take subnormal numbers for zeros as it does. The first
  // exception is thrown to the caller when all tasks that had begun are done; tasks that had not
  // are left out.
  void run(int64_t count, int threads, Task task, void* context);

  // The same in two halves: between them the caller does other work. Every begin needs its finish,
  // on the same thread, the last begun first.
  struct Region;
  Region* begin(int64_t count, int threads, Task task, void* context);
  void finish(Region* region);

  // How many threads compute at most, counting only one of the callers.
  int size() const;
  void resize(int threads);

  // Workers stay awake while one of these lives: a model runs, and its next region is near.
  class Awake {
   public:
    Awake();
    ~Awake();
    Awake(const Awake&) = delete;
    Awake& operator=(const Awake&) = delete;

   private:
    State* state_;
  };

  // From opening a region to a helper's first task, as it was lately.
  double handoff_ns() const;

  // Of all regions so far, for reports.
  struct Times {
    double helped = 0;  // seconds that threads of the pool worked
    double waited = 0;  // seconds that callers waited for tasks that others had begun
  };
  Times times() const;

  // For tests: called at the points where a thread may lose its core with the worst effect.
  using Hook = void (*)();
  static void set_hook(Hook hook);

  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

 private:
  ThreadPool();
  State* state_;
  friend struct PoolOfProcess;
};

}  // namespace anymps
