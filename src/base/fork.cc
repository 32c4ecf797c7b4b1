// SPDX-License-Identifier: Apache-2.0
#include "base/fork.h"

#include <pthread.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <system_error>
#include <thread>
#include <utility>

namespace anymps {

namespace {

// A mutex that is held for a short time comes free while the others are held, unless its holder
// waits for one of those: then all are given back for a moment.
constexpr int kTries = 100;
constexpr auto kPause = std::chrono::microseconds(100);
// The holder may wait for what the forking thread has, such as an interpreter's lock. The child
// then does without what the mutex guards.
constexpr auto kPatience = std::chrono::seconds(10);

std::atomic<unsigned> generation{0};

}  // namespace

// The functions for pthread_atfork, and the list of all mutexes.
class ForkHandler {
 public:
  static void add(ForkMutex& mutex) {
    static const int kProblem = pthread_atfork(prepare, in_parent, in_child);
    if (kProblem) throw std::system_error(kProblem, std::generic_category(), "pthread_atfork");
    const std::lock_guard lock(list_mutex);
    mutex.after_ = first;
    if (first) first->before_ = &mutex;
    first = &mutex;
  }

  static void remove(ForkMutex& mutex) {
    const std::lock_guard lock(list_mutex);
    (mutex.before_ ? mutex.before_->after_ : first) = mutex.after_;
    if (mutex.after_) mutex.after_->before_ = mutex.before_;
  }

 private:
  static bool take(ForkMutex& mutex) {
    if (mutex.try_lock()) return true;
    for (int i = 0; mutex.hold_ == ForkMutex::kShort && i < kTries; ++i) {
      std::this_thread::yield();
      if (mutex.try_lock()) return true;
    }
    return false;
  }

  static void give_back_all() {
    for (ForkMutex* mutex = first; mutex; mutex = mutex->after_)
      if (std::exchange(mutex->taken_, false)) mutex->unlock();
  }

  // Ends with the list's own mutex held.
  static void prepare() {
    const auto end = std::chrono::steady_clock::now() + kPatience;
    for (;;) {
      list_mutex.lock();
      ForkMutex* mutex = first;
      for (; mutex; mutex = mutex->after_) {
        mutex->taken_ = take(*mutex);
        if (!mutex->taken_ && mutex->hold_ == ForkMutex::kShort &&
            std::chrono::steady_clock::now() < end)
          break;
      }
      if (!mutex) return;
      give_back_all();
      list_mutex.unlock();
      std::this_thread::sleep_for(kPause);
    }
  }

  static void in_parent() {
    give_back_all();
    list_mutex.unlock();
  }

  static void in_child() {
    generation.fetch_add(1, std::memory_order_relaxed);
    for (ForkMutex* mutex = first; mutex; mutex = mutex->after_) {
      if (mutex->taken_)
        mutex->unlock();
      else
        std::construct_at(static_cast<std::mutex*>(mutex));
    }
    for (ForkMutex* mutex = first; mutex; mutex = mutex->after_) {
      const bool whole = std::exchange(mutex->taken_, false);
      if (mutex->in_child_) mutex->in_child_(whole);
    }
    list_mutex.unlock();
  }

  static constinit inline std::mutex list_mutex;
  static constinit inline ForkMutex* first = nullptr;
};

ForkMutex::ForkMutex(Hold hold, InChild in_child) : hold_(hold), in_child_(std::move(in_child)) {
  ForkHandler::add(*this);
}

ForkMutex::~ForkMutex() { ForkHandler::remove(*this); }

unsigned fork_generation() noexcept { return generation.load(std::memory_order_relaxed); }

}  // namespace anymps
