// SPDX-License-Identifier: Apache-2.0
// Threads for calls that may take long, so that the loops go on: loading a model takes seconds.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace anymps::server::http {

class Workers {
 public:
  explicit Workers(unsigned count);
  ~Workers();  // finishes what has begun; the rest is not run
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;
  void submit(std::function<void()> task);

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace anymps::server::http
