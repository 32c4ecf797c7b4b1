// SPDX-License-Identifier: Apache-2.0
#include "server/http/transport/workers.h"

namespace anymps::server::http {

Workers::Workers(unsigned count) {
  for (unsigned i = 0; i < count; ++i)
    threads_.emplace_back([this] {
      while (true) {
        std::function<void()> task;
        {
          std::unique_lock lock(mutex_);
          changed_.wait(lock, [this] { return stopping_ || !tasks_.empty(); });
          if (stopping_) return;
          task = std::move(tasks_.front());
          tasks_.pop_front();
        }
        task();
      }
    });
}

Workers::~Workers() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void Workers::submit(std::function<void()> task) {
  {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
  }
  changed_.notify_one();
}

}  // namespace anymps::server::http
