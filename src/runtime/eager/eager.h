// SPDX-License-Identifier: Apache-2.0
// One op at a time, without a graph. A call is a look-up: its key is made from the op, the
// attributes and the tensors' descriptions (never their elements, so scalars do not fill the
// cache), and the entry is a prepared kernel with the descriptions of its results. Each thread
// remembers the entries that it used last, so that the usual call takes no lock.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <span>

#include "base/denormals.h"
#include "runtime/device.h"
#include "runtime/eager/entry.h"
#include "runtime/eager/key.h"
#include "runtime/eager/versions.h"
#include "runtime/profiler.h"

namespace anymps {

class CallWindow;

// What an op's calls had to do beside their kernels, or had no kernel for.
struct EagerCounts {
  uint64_t calls = 0;      // those counted here: with a copy, or by the reference kernel
  uint64_t reference = 0;  // calls of the reference kernel on another driver
  uint64_t packed = 0;     // inputs that were copied to be dense
  uint64_t aside = 0;      // outputs that were computed elsewhere and copied
};

class Eager {
 public:
  Eager(Device& device, size_t capacity);

  // All in the caller's memory. Outputs may have any strides that keep their elements apart, and
  // may share memory with inputs, but not with each other.
  // Versions, if there are any, say of each input whether its elements may have changed (0), or
  // else that they have not since a call with the same address, description and version.
  void call(const BoundOp& op, std::span<const TensorView> inputs,
            std::span<const TensorView> outputs, Queue& queue,
            std::span<const double> parameters = {}, std::span<const uint64_t> versions = {});
  // Lets go of what was made from the memory for its versions.
  void forget(const void* memory, size_t bytes) { versions_.forget(memory, bytes); }
  // Fails as the call would before its kernel runs, and prepares it. What the queue holds is waited
  // for where shapes depend on elements.
  void check(const BoundOp& op, std::span<const TensorView> inputs,
             std::span<const TensorView> outputs, Queue& queue,
             std::span<const double> parameters = {});
  // What the call runs, for who keeps it: null if that takes more than its kernel and addresses.
  // The memory of the views is not looked at.
  std::shared_ptr<const EagerEntry> fix(const BoundOp& op, std::span<const TensorView> inputs,
                                        std::span<const TensorView> outputs, Queue& queue);
  void run_kernel(const EagerEntry& entry, const KernelArgs& args);
  // Tells the descriptions of the results, row-major, without a run.
  void infer(const BoundOp& op, std::span<const TensorView> inputs, size_t count, Queue& queue,
             const std::function<void(size_t, const TensorDesc&)>& tell);
  // Null inputs are absent. Outputs without a buffer are made; others are written to.
  void call(const Op& op, std::span<const Tensor* const> inputs, std::span<const EagerAttr> attrs,
            std::span<Tensor> outputs);
  // For a call that may run later, in one pass with others (deferral.h): fails as the call would,
  // and adds it to the window if it can wait there.
  enum class Joined { kYes, kNotNow, kNever };
  Joined join(CallWindow& window, const BoundOp& op, std::span<const TensorView> inputs,
              std::span<const TensorView> outputs, Queue& queue,
              std::span<const double> parameters);
  // Runs the calls of the window.
  void run(CallWindow& window, Queue& queue);
  // Elements from one place to another of the same dtype and shape, whatever the strides.
  void copy(const TensorView& from, const TensorView& to, Queue& queue);

  CacheStats stats() const;
  // Other threads let go of what they remember at their next calls.
  void clear();

  std::map<std::string, EagerCounts> counts() const;  // by op
  void reset_counts();
  // Every call is timed while there is a profiler; null: none.
  void watch(std::shared_ptr<Profiler> profiler);

 private:
  class Use;
  struct Request;

  void find(Use& use, const EagerKey& key);
  void find_or_make(Use& use, const EagerKey& key, const Request& request, bool content,
                    const std::vector<Shape>* measured);
  void look_up(Use& use, const Request& request);
  std::shared_ptr<EagerEntry> prepare(const Request& request, bool content,
                                      const std::vector<Shape>* measured);
  static void set_constants(PreparedCall& call, const Request& request);
  std::shared_ptr<EagerEntry> versioned(EagerEntry& plain, const Request& request);
  std::vector<Shape> measure(const Request& request);
  Content content_of(const TensorView& view, Queue& queue);
  static void check_output(const EagerEntry& entry, size_t i, const TensorView& output);
  std::shared_ptr<EagerEntry> prepare(const CallWindow& window, Queue& queue);
  void run(const EagerEntry& entry, const Request& request);
  void run_apart(const CallWindow& window, Queue& queue);
  void compare(const EagerEntry& entry, const Request& request, void* const* in, void* const* out);
  void count(const EagerEntry& entry, uint64_t packed, uint64_t aside);

  Device& device_;
  const Denormals denormals_;
  const bool checked_;  // ANYMPS_CHECK: every call is compared with the reference
  LruCache<EagerKey, EagerEntry, EagerKeyHash> entries_;
  VersionedKernels versions_;
  std::atomic<uint64_t> epoch_, remembered_{0};
  std::atomic<bool> watched_{false};
  mutable ForkMutex mutex_;  // guards what follows
  std::map<std::string, EagerCounts> counts_;
  std::shared_ptr<Profiler> profiler_;
};

}  // namespace anymps
