// SPDX-License-Identifier: Apache-2.0
// Runs the threadgroups of a launch on the machine's threads. Compiled once for each user and
// machine, as the shaders are; the threads are made at the first launch that is worth them.
#include <pthread.h>

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstring>
#include <mutex>
#include <new>
#include <thread>
#include <utility>

#include "worker.h"

namespace anymps_shader {
namespace {

struct Job {
  const Entry& entry;
  const Launch& launch;
  long groups;
  long step;  // threadgroups taken at once
  std::atomic<long> next{0};
  std::atomic<int> result{kDone};

  void work() {
    for (;;) {
      const long first = next.fetch_add(step);
      if (first >= groups) return;
      const Result answer =
          Worker::mine().run(entry, launch, first, std::min(groups, first + step));
      if (answer != kDone) result = answer;
    }
  }
};

class Pool {
 public:
  // The caller works too; false where another launch has the pool.
  bool run(Job& job, int helpers) {
    {
      std::unique_lock lock(mutex_);
      if (job_ != nullptr) return false;
      while (threads_ < helpers) {
        std::thread([this] { serve(); }).detach();
        ++threads_;
      }
      job_ = &job;
      places_ = helpers;
    }
    if (helpers == 1)
      wake_.notify_one();
    else
      wake_.notify_all();
    job.work();
    std::unique_lock lock(mutex_);
    places_ = 0;
    idle_.wait(lock, [this] { return busy_ == 0; });
    job_ = nullptr;
    return true;
  }

 private:
  void serve() {
    std::unique_lock lock(mutex_);
    for (;;) {
      wake_.wait(lock, [this] { return places_ > 0; });
      --places_;
      ++busy_;
      Job& job = *job_;
      lock.unlock();
      job.work();
      lock.lock();
      if (--busy_ == 0) idle_.notify_one();
    }
  }

  std::mutex mutex_;
  std::condition_variable wake_, idle_;
  Job* job_ = nullptr;
  int places_ = 0;  // helpers that may still join the job
  int busy_ = 0;
  int threads_ = 0;
};

// Never destroyed: its threads may still wait when the process ends. A forked child has none of
// them and starts anew.
alignas(Pool) char pool_memory[sizeof(Pool)];
Pool& pool() {
  static Pool* const pool = [] {
    pthread_atfork(nullptr, nullptr, [] { new (pool_memory) Pool; });
    return new (pool_memory) Pool;
  }();
  return *pool;
}

// Fewer threads of a kernel than this are done sooner than another thread wakes up.
constexpr long kWorthHelp = 8192;
constexpr long kWorthHelpWaiting = 512;

}  // namespace
}  // namespace anymps_shader

using namespace anymps_shader;

extern "C" __attribute__((visibility("default")))
const Runtime anymps_shader_functions = {&Worker::barrier, &Worker::meet, &Worker::threadgroup};

extern "C" __attribute__((visibility("default"))) int anymps_shader_launch(const Entry* entry,
                                                                           void* const* buffers,
                                                                           const char* sizes) {
  Launch launch;
  std::memcpy(&launch, sizes, offsetof(Launch, workers) + sizeof(launch.workers));
  launch.buffers = buffers;
  const long groups = long{launch.groups[0]} * launch.groups[1] * launch.groups[2];
  const long threads = long{launch.grid[0]} * launch.grid[1] * launch.grid[2];
  const long workers = std::min<long>(launch.workers, groups);
  if (workers > 1 && threads >= (entry->range != nullptr ? kWorthHelp : kWorthHelpWaiting)) {
    Job job{*entry, launch, groups, std::max(1l, groups / (workers * 4))};
    if (pool().run(job, static_cast<int>(workers) - 1)) return job.result;
  }
  return Worker::mine().run(*entry, launch, 0, groups);
}
