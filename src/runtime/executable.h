// SPDX-License-Identifier: Apache-2.0
// An executable: an optimised graph on a device, with a plan for each set of feed shapes it has
// met. Several threads may run one executable at the same time; they share its weights.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <unordered_set>
#include <vector>

#include "base/denormals.h"
#include "base/fork.h"
#include "base/mapped_file.h"
#include "graph/graph.h"
#include "memory/refreshable.h"
#include "passes/pass.h"
#include "runtime/device.h"
#include "runtime/gate.h"
#include "runtime/interpreter.h"
#include "runtime/plan.h"
#include "runtime/tensor_view.h"

namespace anymps {

struct CompileOptions {
  int threads = 0;  // 0: the driver's default
  int optimization_level = 1;
  size_t plan_cache = 16;  // shapes that are kept ready
  bool check = false;      // compare each node with the reference (also ANYMPS_CHECK)
  std::vector<std::string> without_passes;
  std::vector<Alias> aliases;  // results that may lie in the memory of feeds
  MappedFiles files;           // that constants of the graph lie in
  DenormalOption denormals = DenormalOption::kDefault;
  int weight_bits = 0;  // 8 or 4: large weights are stored in so many; 0: as they are
};

Denormals denormals_of(const CompileOptions& options, const DriverTraits& traits);

// Extents of an executable's symbols, by their numbers; -1: not bound. Empty: none is.
using Bindings = std::vector<int64_t>;

// Plans that ran lately, each with a context of its own: a run whose feeds are like those of a run
// before takes one and puts it back, without a key, a lock or an allocation.
class ReadyPlans {
 public:
  struct Ready {
    std::shared_ptr<Plan> plan;
    std::unique_ptr<Plan::Context> context;
    std::vector<DType> dtypes;  // of the feeds
    Bindings bindings;
    uint64_t hash, epoch;
    ~Ready();
  };

  explicit ReadyPlans(size_t plan_cache);
  ~ReadyPlans() { clear(); }
  ReadyPlans(const ReadyPlans&) = delete;
  ReadyPlans& operator=(const ReadyPlans&) = delete;

  // One for such feeds with these bindings; null: there is none, or other runs have it.
  std::unique_ptr<Ready> take(std::span<const TensorView> feeds, const Bindings& bindings);
  void put_back(std::unique_ptr<Ready> ready);
  // For the next run with such feeds, which are row-major.
  void add(const std::shared_ptr<Plan>& plan, std::span<const TensorView> feeds,
           const Bindings& bindings);
  void clear();  // those that runs have are not kept either
  uint64_t hits() const { return hits_.load(std::memory_order_relaxed); }

 private:
  static constexpr size_t kMost = 8;
  struct alignas(64) Slot {
    std::atomic<Ready*> ready{nullptr};
    std::atomic<uint64_t> hash{0};  // of the one that is there, or was last
  };
  Slot slots_[kMost];
  const size_t count_;
  std::atomic<uint64_t> epoch_{0}, hits_{0}, next_{0};
};

struct ConstantUpdate {
  std::string name;
  std::optional<TensorDesc> desc = {};     // as the constant's; nullopt: its memory has not moved
  const void* data = nullptr;              // the first element
  std::shared_ptr<const void> owner = {};  // of the new memory
};

// The refreshable constants of a graph and of the graphs in it, with their names.
void collect_sources(const Graph& graph, std::vector<std::pair<std::string, ConstantPtr>>& to);

class Executable : public std::enable_shared_from_this<Executable> {
 public:
  // Takes a copy of the graph; constants are shared with it.
  // `depth`: how many bodies of nodes the graph lies in.
  Executable(DevicePtr device, const Graph& graph, CompileOptions options = {}, int depth = 0)
      : Executable(std::move(device), graph.clone(), std::move(options), depth) {}
  // Takes the graph itself.
  Executable(DevicePtr device, std::unique_ptr<Graph> graph, CompileOptions options = {},
             int depth = 0);
  ~Executable();

  // Runs on the queue and waits. Feeds are in the graph's order, on this device, any strides.
  // `results` that are given (same dtype and shape, contiguous) are written to; empty ones are
  // made.
  void run(const std::vector<Tensor>& feeds, std::vector<Tensor>& results, Queue* queue = nullptr,
           Profiler* profiler = nullptr, const Bindings& bindings = {});
  // The long way of it, for those who have found that no plan is ready (ReadyRun).
  void run_unprepared(const std::vector<Tensor>& feeds, std::vector<Tensor>& results, Queue* queue,
                      Profiler* profiler, const Bindings& bindings);
  // The same without waiting. The tensors, and the executable if it is shared, are kept alive until
  // the work is done. Results are made at once when their shapes do not depend on data.
  void submit(const std::vector<Tensor>& feeds, std::vector<Tensor>& results, Queue& queue,
              const Bindings& bindings = {});
  // The fastest form: pointers to contiguous feeds of the shapes of `plan`.
  std::shared_ptr<Plan> plan(const std::vector<Shape>& feeds, const Bindings& bindings = {});
  // Dimensions bound by their names, besides those given. Fails on a name that the graph lacks.
  Bindings bind(const std::vector<std::pair<std::string, int64_t>>& values,
                Bindings bindings = {}) const;

  // The types of the results for feeds of these shapes, without a run. Extents that depend on data
  // are not known. The shapes of feeds that are not tensors are not looked at.
  std::vector<ValueType> result_types(const std::vector<Shape>& feeds,
                                      const Bindings& bindings = {});

  // As part of another executable's run. Results may share memory with feeds.
  std::vector<Tensor> run_body(std::vector<Tensor> feeds, const RunState& state);

  // The variables that read_variable and assign_variable use; they live as long as the executable.
  Variables& variables() { return *variables_; }

  // The caller has changed constants over its memory, or moved them: what was folded or packed of
  // them is made again, and nothing else. Waits for the runs that have begun; those that come
  // meanwhile wait. `write` is called (unless it is null) when no run reads the memory. Fails
  // before it changes anything.
  void refresh(const std::vector<ConstantUpdate>& updates, const std::function<void()>& write);
  void renew(Renewal& renewal);  // as part of another executable
  // Held while the graph's constants are read from outside.
  Gate* gate() const { return sources_.empty() || depth_ > 0 ? nullptr : &gate_; }

  // Drops the plans, their arenas and packed weights; the next run makes them again.
  void clear_plans();
  CacheStats plan_stats() const;

  const Graph& graph() const { return *graph_; }
  const std::vector<PassReport>& passes() const { return passes_; }
  const CompileOptions& options() const { return options_; }
  Device& device() { return *device_; }

 private:
  friend class ReadyRun;
  using Extents = SmallVector<int64_t, 16>;  // of the symbols; -1: not known

  std::shared_ptr<Plan> plan_for(const std::vector<Shape>& feeds,
                                 const std::vector<int64_t>& dimensions);
  // With plan_mutex_ held.
  std::shared_ptr<Plan> make_plan(const std::vector<Shape>& feeds,
                                  const std::vector<int64_t>& dimensions);
  PassContext pass_context() const;
  // The graph for feeds of these shapes, which choose all branches; null: they do not.
  std::shared_ptr<const Graph> without_branches(const std::vector<Shape>& feeds);
  // Whether feeds of these shapes have two extents where the graph has one name.
  bool names_disagree(const std::vector<Shape>& feeds) const;
  // The graph with a name of its own for each extent of the inputs.
  std::shared_ptr<const Graph> told_apart();
  void check_aliases() const;
  void number_symbols(const std::vector<Dim>& of_nodes);
  Extents bound_extents(const Bindings& bindings) const;
  std::vector<int64_t> dimensions_of(const Extents& extents) const;
  void forget_kernels(bool whole);
  std::shared_ptr<Plan> body_plan(const std::vector<Tensor>& feeds);
  bool shape_fits(size_t input, const Shape& shape, Extents& extents,
                  const Bindings& bindings) const;
  Extents check_shapes(const std::vector<Shape>& feeds, const Bindings& bindings) const;
  // Gives the dimensions that nodes ask for.
  std::vector<int64_t> check_feeds(const std::vector<Tensor>& feeds,
                                   const Bindings& bindings = {}) const;
  Interpreter& interpreter();
  void run_plan(Plan& plan, const std::vector<Tensor>& feeds, std::vector<Tensor>& results,
                Queue& queue, Profiler* profiler);
  void interpret(const std::vector<Tensor>& feeds, const std::vector<int64_t>& dimensions,
                 std::vector<Tensor>& results, Queue& queue, Profiler* profiler);
  void run_now(const std::vector<Tensor>& feeds, const std::vector<int64_t>& dimensions,
               std::vector<Tensor>& results, Queue& queue, Profiler* profiler,
               const Bindings& bindings);
  bool run_ready(const std::vector<Tensor>& feeds, std::vector<Tensor>& results, Profiler* profiler,
                 const Bindings& bindings);
  void make_ready(const std::shared_ptr<Plan>& plan, const std::vector<Tensor>& feeds,
                  const Bindings& bindings);
  Tensor own_result(const Value* output, Tensor tensor, Queue& queue);

  DevicePtr device_;
  CompileOptions options_;
  std::unique_ptr<Graph> graph_;
  // Before the passes, where an input's name of an extent comes again and may not mean it.
  std::unique_ptr<const Graph> written_;
  std::shared_ptr<const Graph> told_apart_;  // guarded by plan_mutex_
  std::vector<PassReport> passes_;
  std::vector<SmallVector<int, 6>> symbols_;  // of each dimension of each input; -1: known
  std::vector<int64_t> limits_;               // of each symbol: the largest extent
  std::vector<std::string> symbol_names_;
  std::vector<std::string> dimension_names_;                  // symbols that nodes `dimension` give
  std::vector<std::pair<std::string, ConstantPtr>> sources_;  // refreshable ones, by their names
  mutable Gate gate_;                                         // of those
  LruCache<std::string, Plan> plans_;
  ReadyPlans ready_;
  Plan::KernelCache kernels_;
  std::unordered_set<std::string> unplanned_;  // feeds for which shapes depend on data
  ForkMutex last_mutex_;                       // guards the next two
  std::shared_ptr<Plan> last_plan_;            // of run_body
  std::vector<Shape> last_shapes_;
  Denormals denormals_ = Denormals::kKeep;
  bool never_planned_ = false;           // the graph must be interpreted, whatever the feeds
  bool branches_follow_shapes_ = false;  // what keeps it from a plan may go once these are known
  uint8_t specialised_ = 0;              // how often that was tried
  int depth_ = 0;
  std::once_flag interpreter_made_;
  std::unique_ptr<Interpreter> interpreter_;
  std::unique_ptr<Variables> variables_;
  // Guards kernels_ and unplanned_, even while a plan is made.
  ForkMutex plan_mutex_{ForkMutex::kLong, [this](bool whole) { forget_kernels(whole); }};
};

// One run the short way, on the calling thread. Where it cannot be had the caller takes the long
// one, which also says what is wrong with the feeds or results.
class ReadyRun {
 public:
  ReadyRun(Executable& executable, std::span<const TensorView> feeds, const Bindings& bindings);
  ~ReadyRun();
  ReadyRun(const ReadyRun&) = delete;
  ReadyRun& operator=(const ReadyRun&) = delete;

  explicit operator bool() const { return ready_ != nullptr; }
  const std::vector<TensorDesc>& results() const { return ready_->plan->results(); }
  // Whether the plan can write to this memory. What is left out is for the caller to make.
  bool may_write(std::span<const TensorView> feeds, std::span<const TensorView> results) const;
  void run(std::span<const TensorView> feeds, std::span<const TensorView> results,
           Profiler* profiler);

 private:
  Executable& executable_;
  const Gate::Inside inside_;
  std::unique_ptr<ReadyPlans::Ready> ready_;
};

}  // namespace anymps
