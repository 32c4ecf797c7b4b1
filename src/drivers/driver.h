// SPDX-License-Identifier: Apache-2.0
// The contract between the engine and a driver. A driver owns one kind of device: its memory, its
// queues, and an ordered list of kernels for each op. What is marked optional has a default that
// suits a device that shares the host's memory and computes on the calling thread.
// docs/guides/add_a_driver.md walks through a driver from end to end.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "drivers/kernel.h"
#include "memory/fence.h"
#include "memory/raw_memory.h"

namespace anymps {

// Facts about a driver that passes and the planner use.
struct DriverTraits {
  bool host_visible = true;   // the host may read and write device memory
  bool computes = true;       // false: results are not to be looked at (the null driver)
  bool prefers_nhwc = false;  // convolutions are faster with channels last
  bool fuses = false;         // has kernels for the fused forms that the passes make
  DTypeSet widened = 0;       // half types whose arithmetic is faster in f32
  // Takes subnormal numbers for zeros where a run is asked to; else they are kept.
  bool flushes_denormals = false;
  // The list of every op ends with the reference kernel (through a copy when not host_visible).
  bool reference_fallback = true;
};

// Seconds, over all callers since the process began.
struct ThreadTimes {
  double helped = 0;  // that the driver's threads computed beside their callers
  double waited = 0;  // that callers waited for them
};

// A point in a queue's work that can be waited for. Recorded once, then only read.
class Event : public Fence {
 public:
  // When the work before it was done, for timing; valid after done().
  virtual std::chrono::steady_clock::time_point time() const = 0;
};
using EventRef = std::shared_ptr<Event>;

// An in-order queue of work. An error of queued work is kept and thrown by synchronize().
class Queue {
 public:
  virtual ~Queue() = default;
  // Calls `work` in order, now or later. Kernels inside it launch on this queue.
  virtual void submit(std::function<void()> work) = 0;
  // Calls `work` in order and returns when its results are there. Uses the calling thread if it
  // can.
  virtual void run(const std::function<void()>& work) = 0;
  virtual void synchronize() = 0;
  virtual EventRef record() = 0;                 // after all work submitted so far
  virtual void wait(const EventRef& event) = 0;  // later work starts after the event
  virtual bool idle() = 0;
  // For an owner that gives the queue up inside the queue's own work, where it cannot be deleted:
  // true if that is so, and the queue deletes itself after its work.
  virtual bool delete_later() { return false; }
};

// A kernel of a chain, each of which reads the one result of the one before.
struct ChainLink {
  const Kernel* kernel = nullptr;
  const KernelRequest* request = nullptr;
  size_t input = 0;  // which of its inputs that is; not told for the first
};

class Driver {
 public:
  virtual ~Driver() = default;
  virtual const char* name() const = 0;
  virtual std::string description() const = 0;  // for `anymps doctor`
  virtual DriverTraits traits() const = 0;

  virtual std::unique_ptr<RawMemory> create_memory() { return std::make_unique<HostMemory>(); }
  virtual std::unique_ptr<Queue> create_queue();  // optional: default is a HostQueue
  virtual const KernelList& kernels(const Op& op) const { return kernel_list(name(), op.name); }
  // Optional: what the times of its kernels depend on besides the number of threads, in one line
  // (the processor, instruction sets, libraries). ANYMPS_TUNE measures the kernels of drivers that
  // tell it.
  virtual std::string timing_identity() const { return {}; }

  // Copies between host and device and within the device, in order with the queue's work.
  // Optional where host_visible.
  virtual void copy_to_device(void* device, const void* host, size_t bytes, Queue* queue);
  virtual void copy_to_host(void* host, const void* device, size_t bytes, Queue* queue);
  virtual void copy_on_device(void* to, const void* from, size_t bytes, Queue* queue);

  // Optional: the calling thread is about to prepare or run kernels with at most this many threads
  // (see ThreadScope; 0: all). Returns what it had before, for restore_threads.
  virtual int use_threads(int threads) { return threads; }
  virtual void restore_threads(int before) { (void)before; }
  virtual int max_threads() const { return 1; }
  virtual void set_max_threads(int threads);  // fails where there is one thread for good
  virtual ThreadTimes thread_times() const { return {}; }
  // Optional: one kernel for a chain, whose intermediate results then need no memory of their own.
  // Its inputs are those of all links, one after another (what lies between them is null), its
  // result is the last one's, with the same bits as the links give one by one. It need not outlive
  // them. Null: they are better apart.
  virtual KernelPtr join(std::span<const ChainLink> links) {
    (void)links;
    return nullptr;
  }
  // Calls fn(0) … fn(count - 1) on up to this many threads, in any order, and returns when all
  // have. Runs inside them share the threads.
  virtual void parallel(size_t count, int threads, const std::function<void(size_t)>& fn);
};

// While this lives, kernels of the calling thread are prepared or run with at most this many
// threads, and with no more than a scope around it has.
class ThreadScope {
 public:
  ThreadScope(Driver& driver, int threads)
      : driver_(driver), before_(driver.use_threads(threads)) {}
  // This many whatever is around it: for kernels that will be there when the caller's share of the
  // threads is another one.
  struct Exactly {
    int threads;
  };
  ThreadScope(Driver& driver, Exactly exactly) : driver_(driver), before_(driver.use_threads(0)) {
    driver.restore_threads(exactly.threads);
  }
  ~ThreadScope() { driver_.restore_threads(before_); }
  ThreadScope(const ThreadScope&) = delete;
  ThreadScope& operator=(const ThreadScope&) = delete;

 private:
  Driver& driver_;
  int before_;
};

// Drivers by name ("cpu", "reference", "null", …). Each registers itself with a DriverRegistrar in
// its own folder, and is made at its first use.
Driver& get_driver(const std::string& name);  // fails with the known names in the message
std::vector<std::string> driver_names();
struct DriverRegistrar {
  DriverRegistrar(const char* name, std::function<std::unique_ptr<Driver>()> make);
};

}  // namespace anymps
