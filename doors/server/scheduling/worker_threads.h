// SPDX-License-Identifier: Apache-2.0
// The threads of a scheduler. The last answer of a model that is being unloaded may well end its
// scheduler, on a thread of that very scheduler: such a thread is left to end by itself, so what it
// works on must be kept alive by the function that it runs.
#pragma once

#include <functional>
#include <thread>
#include <vector>

namespace anymps::server {

class WorkerThreads {
 public:
  ~WorkerThreads() { join(); }
  void start(std::function<void()> work) { threads_.emplace_back(std::move(work)); }
  void join() {
    for (std::thread& thread : threads_) {
      if (thread.get_id() == std::this_thread::get_id())
        thread.detach();
      else
        thread.join();
    }
    threads_.clear();
  }

 private:
  std::vector<std::thread> threads_;
};

}  // namespace anymps::server
