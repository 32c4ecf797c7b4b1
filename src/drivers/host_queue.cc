// SPDX-License-Identifier: Apache-2.0
#include "drivers/host_queue.h"

#include <atomic>
#include <limits>
#include <memory>
#include <utility>

namespace anymps {

namespace {

using Clock = std::chrono::steady_clock;

// What was queued before a fork is not done in the child, and nothing there waits for it.
class HostEvent : public Event {
 public:
  bool done() noexcept override {
    if (time_.load(std::memory_order_acquire) != kNever) return true;
    if (generation_ == fork_generation()) return false;
    signal();
    return true;
  }
  void wait() noexcept override {
    if (!done()) time_.wait(kNever, std::memory_order_acquire);
  }
  Clock::time_point time() const override {
    return Clock::time_point(Clock::duration(time_.load(std::memory_order_acquire)));
  }
  void signal() noexcept {
    time_.store(Clock::now().time_since_epoch().count(), std::memory_order_release);
    time_.notify_all();
  }

 private:
  static constexpr Clock::rep kNever = std::numeric_limits<Clock::rep>::min();

  const unsigned generation_ = fork_generation();
  std::atomic<Clock::rep> time_{kNever};
};

}  // namespace

// Takes the lock. What a fork has dropped goes here, not in the fork: its owners are told.
std::unique_lock<std::mutex> HostQueue::enter() {
  std::unique_lock<std::mutex> lock(mutex_);
  if (dropped_.empty()) return lock;
  Work dropped;
  dropped.swap(dropped_);
  lock.unlock();
  dropped.clear();
  lock.lock();
  return lock;
}

// In a forked child: the worker is a thread of the parent, and so is whoever waits.
void HostQueue::restart() {
  std::construct_at(&changed_);
  if (!work_.empty()) dropped_.swap(work_);  // each use empties `dropped_` before it adds work
  if (worker_.get_id() == std::this_thread::get_id()) return;  // the queue's own work has forked
  std::construct_at(&worker_);
  busy_ = false;
}

HostQueue::~HostQueue() {
  {
    const auto lock = enter();
    stop_ = true;
    changed_.notify_all();
  }
  if (worker_.joinable()) worker_.join();
}

void HostQueue::submit(std::function<void()> work) {
  const auto lock = enter();
  if (!worker_.joinable()) worker_ = std::thread([this] { work_loop(); });
  work_.push_back(std::move(work));
  changed_.notify_all();
}

// What the work throws; null: nothing.
static std::exception_ptr error_of(const std::function<void()>& work) {
  try {
    work();
    return nullptr;
  } catch (...) {
    return std::current_exception();
  }
}

void HostQueue::run(const std::function<void()>& work) {
  auto lock = enter();
  changed_.wait(lock, [this] { return work_.empty() && !busy_; });
  throw_pending(lock);
  busy_ = true;
  lock.unlock();
  const std::exception_ptr error = error_of(work);
  lock.lock();
  busy_ = false;
  changed_.notify_all();
  if (error) std::rethrow_exception(error);
}

void HostQueue::synchronize() {
  auto lock = enter();
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
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stop_ || (!work_.empty() && !busy_); });
    if (work_.empty()) break;
    std::function<void()> work = std::move(work_.front());
    work_.pop_front();
    busy_ = true;
    lock.unlock();
    const std::exception_ptr error = error_of(work);
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
