// SPDX-License-Identifier: Apache-2.0
// A plan: a graph made concrete for the shapes of one set of feeds. Kernels are chosen and
// prepared, views are resolved to pointers, and all intermediate tensors lie in one arena. Running
// it walks a flat list of steps and allocates nothing.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/denormals.h"
#include "base/fork.h"
#include "graph/graph.h"
#include "memory/planner.h"
#include "runtime/device.h"
#include "runtime/kernel_choice.h"
#include "runtime/profiler.h"

namespace anymps {

struct Step {
  const Node* node = nullptr;  // null: a copy that makes a strided view contiguous
  std::string name, op;
  KernelChoice choice;
  KernelRequest request;                       // without constants
  size_t first_input = 0, first_output = 0;    // places in the pointer table
  size_t scratch = 0;                          // place of the scratch pointer, if scratch_bytes
  Denormals denormals = Denormals::kAsThread;  // if another mode than the plan's
  double flops = 0, bytes = 0;
};

// A result that may lie in the memory of a feed, both by their numbers.
struct Alias {
  size_t result = 0, feed = 0;
};

struct PlanOptions {
  int threads = 1;
  bool share_memory = true;  // false: every tensor has its own memory, nothing is in place
  std::span<const Alias> aliases = {};
  Denormals denormals = Denormals::kKeep;
};

// What the nodes `dimension` of a graph give.
struct Dimensions {
  std::span<const std::string> names = {};
  std::vector<int64_t> values = {};  // one for each name

  int64_t at(const Node& node) const;
};
std::string symbol_name(const Dim& dim);  // without the limit: "N" of "N<=128"
Dim symbol_of(const Node& node);          // that a node `dimension` gives

// Where a value's elements are.
struct Location {
  enum Kind { kNone, kConstant, kArena, kFeed, kResult } kind = kNone;
  size_t index = 0;    // of the constant, the arena tensor, the feed or the result
  int64_t offset = 0;  // bytes from the start of that memory
};

// What the memory plan looked like, for `anymps inspect`.
struct PlanMemory {
  struct Entry {
    std::string value;
    size_t offset = 0, bytes = 0, first_step = 0, last_step = 0;
  };
  std::vector<Entry> entries;
  size_t arena_bytes = 0, unshared_bytes = 0, lower_bound = 0;
};

class Plan {
 public:
  // Prepared kernels of a graph's nodes, shared between the plans of different shapes, so that a
  // new shape prepares only what changed.
  using KernelCache = std::unordered_map<std::string, std::weak_ptr<const KernelChoice>>;

  // Null when a shape depends on data: then the graph must be interpreted step by step.
  static std::shared_ptr<Plan> make(Device& device, const Graph& graph,
                                    const std::vector<Shape>& feeds, const PlanOptions& options,
                                    KernelCache& cache, const Dimensions& dimensions = {});

  // What a run has for itself. Kept for the next one when it is given back, unless it is large:
  // plans are many, and the allocator's pool, which is bounded, hands large memory out quickly.
  struct Context {
    BufferRef arena;
    std::vector<void*> table;
  };
  std::unique_ptr<Context> take_context();
  void give_back(std::unique_ptr<Context> context);
  static constexpr size_t kMostKept = size_t{64} << 20;
  bool keeps_contexts() const { return arena_bytes_ <= kMostKept; }

  // Pointers to the feeds' and results' first elements, in the graph's order; all contiguous.
  void run(void* const* feeds, void* const* results, Queue& queue, Profiler* profiler, bool check);
  void run(Context& context, void* const* feeds, void* const* results, Queue& queue,
           Profiler* profiler, bool check);

  // What it was made for: the shapes of the feeds, and dimensions that none of them tells.
  const std::vector<Shape>& feeds() const { return feeds_; }
  const std::vector<int64_t>& dimensions() const { return dimensions_; }
  const std::vector<TensorDesc>& results() const { return results_; }
  const std::vector<Step>& steps() const { return steps_; }
  const PlanMemory& memory() const { return memory_; }
  bool reads_files() const { return reads_files_; }  // constants are used where a file has them
  void keep(std::shared_ptr<const void> owner) { keep_.push_back(std::move(owner)); }

 private:
  friend class PlanBuilder;
  struct Patch {
    size_t place;    // in the pointer table
    size_t index;    // of the feed or result
    int64_t offset;  // bytes
  };

  Device* device_ = nullptr;
  int threads_ = 1;
  Denormals denormals_ = Denormals::kKeep;
  bool reads_files_ = false;
  bool keeps_awake_ = true;  // the threads of the pool, from step to step
  std::vector<Step> steps_;
  std::vector<Shape> feeds_;
  std::vector<int64_t> dimensions_;
  std::vector<TensorDesc> results_;
  std::vector<void*> table_;  // constants filled in, the rest relative to the arena or null
  std::vector<std::pair<size_t, size_t>> arena_places_;  // place, offset
  std::vector<Patch> feed_patches_, result_patches_;
  std::vector<std::shared_ptr<const void>> keep_;  // constants that kernels read, the graph
  std::vector<std::shared_ptr<const KernelChoice>> choices_;
  size_t arena_bytes_ = 0;
  PlanMemory memory_;
  mutable ForkMutex mutex_;
  std::vector<std::unique_ptr<Context>> free_;
};

// Runs inference over a graph with concrete feed shapes. Fills `types` for every value. A node that
// inference leaves open is shown to `settle`, which may tell more.
void infer_concrete(const Graph& graph, const std::vector<Shape>& feeds,
                    std::unordered_map<const Value*, ValueType>& types,
                    const Dimensions& dimensions = {},
                    const std::function<void(const Node&)>& settle = nullptr);

// Compares what a kernel computed with the oracle and fails, naming the node, where they differ.
// Drivers whose results the host cannot look at are passed over.
void check_with_oracle(Driver& driver, const KernelChoice& choice, const KernelRequest& request,
                       void* const* inputs, void* const* outputs);
// The same for one result beside another one of the same request, both contiguous: where they
// differ by more than the tolerance, which is the op's if none is given, or "".
std::string result_difference(const KernelRequest& request, size_t output, void* const* inputs,
                              const void* got, const void* expected,
                              std::optional<double> tolerance = std::nullopt);

}  // namespace anymps
