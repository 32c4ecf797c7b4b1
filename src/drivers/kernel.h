// SPDX-License-Identifier: Apache-2.0
// Kernels and their ordered lists. A kernel is prepared once for one op, its attributes and the
// exact descriptions of its tensors, and then run any number of times, from any thread, with
// pointers alone. A factory that cannot serve a request refuses and says why.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/shape.h"
#include "base/string_store.h"
#include "memory/buffer.h"
#include "memory/constant.h"
#include "ops/op.h"

namespace anymps {

class PackedWeights;
class Queue;

// What a kernel is asked to compute.
struct KernelRequest {
  const Op* op = nullptr;
  Attrs attrs;
  std::string node;                               // for messages
  std::vector<std::optional<TensorDesc>> inputs;  // nullopt: an optional input that is absent
  std::vector<TensorDesc> outputs;                // contiguous unless the caller's memory is not
  // Inputs whose elements are known before the run (weights), else null. A kernel may read them
  // now and pack them; see Kernel::reads.
  std::vector<ConstantPtr> constants;
  // Elements of small integer inputs (shapes, axes, …) if they are known.
  std::vector<std::optional<std::vector<int64_t>>> contents;
  PackedWeights* packed = nullptr;

  bool has(size_t i) const { return i < inputs.size() && inputs[i].has_value(); }
  const TensorDesc& in(size_t i) const { return *inputs[i]; }
  const TensorDesc& out(size_t i = 0) const { return outputs[i]; }
  const Constant* constant(size_t i) const {
    return i < constants.size() ? constants[i].get() : nullptr;
  }
  // Integers from input i if it is present, else from the attribute; nothing if not known yet.
  std::optional<std::vector<int64_t>> ints(size_t i, const char* attr) const;
  // The scalar content of constant input i, if it is one element (any real dtype).
  std::optional<double> scalar(size_t i) const;
};

// What a run brings: a pointer to element [0, …, 0] of each tensor, null for an absent input.
struct KernelArgs {
  void* const* inputs = nullptr;
  void* const* outputs = nullptr;
  void* scratch = nullptr;  // scratch_bytes() of the kernel, 64-byte aligned; not kept between runs
  Queue* queue = nullptr;   // for drivers that launch
  StringStore* strings = nullptr;  // where kernels put strings that they make; set where there are
};

class Kernel {
 public:
  virtual ~Kernel() = default;
  virtual void run(const KernelArgs& args) const = 0;  // thread-safe
  virtual size_t scratch_bytes() const { return 0; }
  // False when constant input i was packed at preparation, so its plain bytes may be dropped.
  virtual bool reads([[maybe_unused]] size_t i) const { return true; }
  // True when an output may be the same memory as input i (same shape and strides).
  virtual bool in_place([[maybe_unused]] size_t i) const { return false; }
  virtual std::string detail() const { return {}; }  // for the profiler: implementation, layout
};
using KernelPtr = std::shared_ptr<const Kernel>;

// A factory returns a kernel, or null and a reason in `why`.
using KernelFactory = std::function<KernelPtr(const KernelRequest& request, std::string& why)>;

// What a factory, or a function that helps one, returns when it refuses: `why` gets the reason, and
// the result is null, nothing or false.
template <typename Result = KernelPtr>
Result refuse(std::string& why, std::string reason) {
  why = std::move(reason);
  return Result();
}

struct KernelEntry {
  std::string name;
  int order = 0;  // lower is tried first
  KernelFactory make;
};
using KernelList = std::vector<KernelEntry>;

// The ordered list of a driver's kernels for an op; empty when it has none.
const KernelList& kernel_list(std::string_view driver, std::string_view op);

struct KernelRegistrar {
  KernelRegistrar(const char* driver, const char* op, const char* name, int order,
                  KernelFactory make);
};

// A kernel from a plain function, for kernels that keep no state but the request.
template <typename Fn>
KernelPtr make_kernel(Fn run) {
  struct Simple final : Kernel {
    explicit Simple(Fn fn) : fn_(std::move(fn)) {}
    void run(const KernelArgs& args) const override { fn_(args); }
    Fn fn_;
  };
  return std::make_shared<Simple>(std::move(run));
}

}  // namespace anymps
