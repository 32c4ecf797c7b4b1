// SPDX-License-Identifier: Apache-2.0
#include "runtime/eager/deferral.h"

#include <pthread.h>

#include <chrono>
#include <cstdlib>
#include <thread>
#include <utility>
#include <vector>

namespace anymps {

namespace {

// A stream that another thread is using when the process forks or ends is left alone after this
// time: that thread may be waiting for us.
constexpr auto kDeferralPatience = std::chrono::seconds(1);
constexpr auto kDeferralPause = std::chrono::microseconds(100);

}  // namespace

// The streams there are. Never destroyed, like the devices.
struct Deferral::All {
  ForkMutex mutex;
  std::vector<std::weak_ptr<Deferral>> streams;

  All() {
    // Handlers of fork() run last first: this one before that of the mutexes.
    pthread_atfork(flush_all, nullptr, nullptr);
    std::atexit(flush_all);
  }
  std::shared_ptr<Deferral> find(const Deferral* wanted) {
    const std::lock_guard lock(mutex);
    for (const auto& stream : streams)
      if (auto living = stream.lock(); living.get() == wanted) return living;
    return nullptr;
  }
  std::vector<std::shared_ptr<Deferral>> living() {
    const std::lock_guard lock(mutex);
    std::vector<std::shared_ptr<Deferral>> found;
    for (const auto& stream : streams)
      if (auto living = stream.lock()) found.push_back(std::move(living));
    return found;
  }
};

Deferral::All& Deferral::all() {
  static All& all = *new All;
  return all;
}

std::shared_ptr<Deferral> Deferral::create(DevicePtr device, Queue& queue) {
  auto made = std::make_shared<Deferral>(Private{}, std::move(device), queue);
  const std::lock_guard lock(all().mutex);
  std::erase_if(all().streams, [](const auto& stream) { return stream.expired(); });
  all().streams.push_back(made);
  return made;
}

Deferral::Deferral(Private, DevicePtr device, Queue& queue)
    : device_(std::move(device)), queue_(queue) {}

Deferral::~Deferral() { flush(); }

// Takes the lock. What the parent of this process has waiting is the parent's.
std::unique_lock<std::mutex> Deferral::enter() {
  std::unique_lock<std::mutex> lock(mutex_);
  if (generation_ != fork_generation()) [[unlikely]]
    start_in_child();
  return lock;
}

void Deferral::start_in_child() {
  generation_ = fork_generation();
  // A thread of the parent may have been changing them.
  std::construct_at(&window_);
  std::construct_at(&error_);
}

void Deferral::set_limit(int calls) {
  const auto lock = enter();
  run_window();
  limit_ = std::min(calls, kMostCalls);
}

void Deferral::wait_for_queue() {
  if (!queue_.idle()) queue_.record()->wait();
}

void Deferral::run_window() {
  if (waiting_ == this) waiting_ = nullptr;
  if (window_.empty()) return;
  try {
    device_->eager().run(window_, device_->queue());
  } catch (...) {
    if (!error_) error_ = std::current_exception();
  }
  window_.clear();
}

void Deferral::flush() {
  const auto lock = enter();
  run_window();
}

void Deferral::finish() {
  const auto lock = enter();
  run_window();
  if (error_) [[unlikely]]
    std::rethrow_exception(std::exchange(error_, nullptr));
}

void Deferral::call(const BoundOp& op, std::span<const TensorView> inputs,
                    std::span<const TensorView> outputs, std::span<const double> parameters,
                    std::span<const uint64_t> versions) {
  if (waiting_ != this) flush_thread();
  const auto lock = enter();
  if (caller_ != &waiting_) {
    run_window();
    caller_ = &waiting_;
  }
  Eager& eager = device_->eager();
  if (limit_ > 0 && may_wait(op.op, inputs)) {
    if (window_.empty()) wait_for_queue();
    const auto join = [&] {
      return eager.join(window_, op, inputs, outputs, device_->queue(), parameters);
    };
    Eager::Joined joined = join();
    if (joined == Eager::Joined::kNotNow) {
      run_window();
      joined = join();
    }
    if (joined == Eager::Joined::kYes) {
      if (!window_.empty()) waiting_ = this;
      if (window_.size() >= limit_) run_window();
      return;
    }
  }
  run_window();
  wait_for_queue();
  eager.call(op, inputs, outputs, device_->queue(), parameters, versions);
}

void Deferral::forget(const void* memory, size_t bytes) {
  const auto lock = enter();
  if (window_.drop(memory, bytes)) run_window();
}

bool Deferral::keep(const BufferRef& buffer) {
  const auto lock = enter();
  if (window_.empty()) return false;
  if (window_.keep(buffer)) return true;
  run_window();
  return false;
}

void Deferral::flush_waiting() {
  if (const auto stream = all().find(std::exchange(waiting_, nullptr))) stream->flush();
}

void Deferral::flush_device(const Device& device) {
  flush_thread();
  for (const auto& stream : all().living())
    if (stream->device_.get() == &device) stream->flush();
}

void Deferral::flush_all() noexcept {
  const auto end = std::chrono::steady_clock::now() + kDeferralPatience;
  for (const auto& stream : all().living()) {
    std::unique_lock<std::mutex> lock(stream->mutex_, std::try_to_lock);
    while (!lock && std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(kDeferralPause);
      (void)lock.try_lock();
    }
    if (lock && stream->generation_ == fork_generation()) stream->run_window();
  }
}

}  // namespace anymps
