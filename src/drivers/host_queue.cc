// SPDX-License-Identifier: Apache-2.0
#include "drivers/host_queue.h"

#include <utility>

namespace anymps {

namespace {

class HostEvent : public Event {
 public:
  bool done() noexcept override {
    std::lock_guard lock(mutex_);
    return done_;
  }
  void wait() noexcept override {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return done_; });
  }
  std::chrono::steady_clock::time_point time() const override {
    std::lock_guard lock(mutex_);
    return time_;
  }
  void signal() {
    std::lock_guard lock(mutex_);
    time_ = std::chrono::steady_clock::now();
    done_ = true;
    changed_.notify_all();
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool done_ = false;
  std::chrono::steady_clock::time_point time_;
};

}  // namespace

HostQueue::~HostQueue() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
    changed_.notify_all();
  }
  if (worker_.joinable()) worker_.join();
}

void HostQueue::submit(std::function<void()> work) {
  std::lock_guard lock(mutex_);
  if (!worker_.joinable()) worker_ = std::thread([this] { work_loop(); });
  work_.push_back(std::move(work));
  changed_.notify_all();
}

void HostQueue::run(const std::function<void()>& work) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return work_.empty() && !busy_; });
  throw_pending(lock);
  busy_ = true;
  lock.unlock();
  std::exception_ptr error;
  try {
    work();
  } catch (...) {
    error = std::current_exception();
  }
  lock.lock();
  busy_ = false;
  changed_.notify_all();
  if (error) std::rethrow_exception(error);
}

void HostQueue::synchronize() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return work_.empty() && !busy_; });
  throw_pending(lock);
}

EventRef HostQueue::record() {
  auto event = std::make_shared<HostEvent>();
  {
    std::lock_guard lock(mutex_);
    if (work_.empty() && !busy_) {
      event->signal();
      return event;
    }
  }
  submit([event] { event->signal(); });
  return event;
}

void HostQueue::wait(const EventRef& event) {
  if (!event->done()) submit([event] { event->wait(); });
}

bool HostQueue::idle() {
  std::lock_guard lock(mutex_);
  return work_.empty() && !busy_;
}

bool HostQueue::delete_later() {
  std::lock_guard lock(mutex_);
  if (std::this_thread::get_id() != worker_.get_id()) return false;
  stop_ = true;
  deletes_itself_ = true;
  return true;
}

void HostQueue::work_loop() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stop_ || (!work_.empty() && !busy_); });
    if (work_.empty()) break;
    std::function<void()> work = std::move(work_.front());
    work_.pop_front();
    busy_ = true;
    lock.unlock();
    std::exception_ptr error;
    try {
      work();
    } catch (...) {
      error = std::current_exception();
    }
    work = nullptr;
    lock.lock();
    busy_ = false;
    if (error && !error_) error_ = error;
    changed_.notify_all();
  }
  if (!deletes_itself_) return;
  worker_.detach();  // from here on nobody else knows the queue
  lock.unlock();
  delete this;
}

void HostQueue::throw_pending(std::unique_lock<std::mutex>& lock) {
  if (!error_) return;
  std::exception_ptr error = std::exchange(error_, nullptr);
  lock.unlock();
  std::rethrow_exception(error);
}

}  // namespace anymps
