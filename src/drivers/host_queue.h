// SPDX-License-Identifier: Apache-2.0
// The queue of drivers that compute on the host: run() uses the calling thread when nothing is
// queued; submit() hands work to one worker thread, started at the first use.
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>

#include "drivers/driver.h"

namespace anymps {

class HostQueue : public Queue {
 public:
  ~HostQueue() override;
  void submit(std::function<void()> work) override;
  void run(const std::function<void()>& work) override;
  void synchronize() override;
  EventRef record() override;
  void wait(const EventRef& event) override;
  bool idle() override;
  bool delete_later() override;

 private:
  void work_loop();
  void throw_pending(std::unique_lock<std::mutex>& lock);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> work_;
  bool busy_ = false, stop_ = false, deletes_itself_ = false;
  std::exception_ptr error_;
  std::thread worker_;
};

}  // namespace anymps
