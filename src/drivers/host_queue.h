// SPDX-License-Identifier: Apache-2.0
// The queue of drivers that compute on the host: run() uses the calling thread when nothing is
// queued; submit() hands work to one worker thread, started at the first use. A forked child drops
// what was queued: its owner is the parent, whose worker does it.
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <thread>

#include "base/fork.h"
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
  std::unique_lock<std::mutex> enter();
  void work_loop();
  void restart();
  void throw_pending(std::unique_lock<std::mutex>& lock);

  using Work = std::deque<std::function<void()>>;

  std::condition_variable changed_;
  Work work_, dropped_;
  bool busy_ = false, stop_ = false, deletes_itself_ = false;
  std::exception_ptr error_;
  std::thread worker_;
  ForkMutex mutex_{ForkMutex::kShort, [this](bool) { restart(); }};
};

}  // namespace anymps
