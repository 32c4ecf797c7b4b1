// SPDX-License-Identifier: Apache-2.0
// A stream that puts off elementwise calls and runs them as one pass when something needs them: the
// stream is waited for, an event is recorded, a call of another kind comes, the window is full, the
// thread calls elsewhere or another thread calls here, the process forks or ends. All of it runs on
// the thread that calls; dtypes and shapes are checked at the call. What a thread queued is done
// before anything that it does next on another stream, so that one thread sees one order.
#pragma once

#include <exception>
#include <memory>
#include <mutex>

#include "base/fork.h"
#include "runtime/eager/eager.h"
#include "runtime/eager/window.h"

namespace anymps {

class Deferral : public std::enable_shared_from_this<Deferral> {
 public:
  static constexpr int kMostCalls = CallWindow::kMostCalls;

  // The queue has the stream's other work, and lives longer.
  static std::shared_ptr<Deferral> create(DevicePtr device, Queue& queue);
  ~Deferral();

  // How many calls may wait. 0: each runs at once.
  void set_limit(int calls);
  // Runs the call, now or later.
  void call(const BoundOp& op, std::span<const TensorView> inputs,
            std::span<const TensorView> outputs, std::span<const double> parameters,
            std::span<const uint64_t> versions = {});
  // Runs what waits. An error is kept for finish.
  void flush();
  // The same, and throws an error that was kept.
  void finish();
  // The memory is about to go: stores to it are dropped, and what still reads it runs now.
  void forget(const void* memory, size_t bytes);
  // Keeps the buffer until the calls that wait have run; if by then nobody else has it, nothing is
  // stored there. False: nothing waits.
  bool keep(const BufferRef& buffer);

  // Runs what the calling thread has waiting, on whatever stream.
  static void flush_thread() {
    if (waiting_) flush_waiting();
  }
  static void flush_device(const Device& device);

 private:
  struct Private {};
  struct All;

 public:
  Deferral(Private, DevicePtr device, Queue& queue);

 private:
  static All& all();
  static void flush_waiting();
  static void flush_all() noexcept;

  std::unique_lock<std::mutex> enter();
  void start_in_child();
  void run_window();
  void wait_for_queue();

  // On which stream the thread has calls waiting; it may be gone by now.
  static inline constinit thread_local Deferral* waiting_ = nullptr;

  const DevicePtr device_;
  Queue& queue_;
  int limit_ = kMostCalls;
  const void* caller_ = nullptr;  // the thread whose calls wait
  unsigned generation_ = fork_generation();
  CallWindow window_;
  std::exception_ptr error_;
  ForkMutex mutex_{ForkMutex::kLong};  // guards all of it
};

}  // namespace anymps
