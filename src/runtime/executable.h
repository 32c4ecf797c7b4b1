// SPDX-License-Identifier: Apache-2.0
// An executable: an optimised graph on a device, with a plan for each set of feed shapes it has
// met. Several threads may run one executable at the same time; they share its weights.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <unordered_set>
#include <vector>

#include "base/fork.h"
#include "base/mapped_file.h"
#include "graph/graph.h"
#include "passes/pass.h"
#include "runtime/device.h"
#include "runtime/interpreter.h"
#include "runtime/plan.h"

namespace anymps {

struct CompileOptions {
  int threads = 0;  // 0: the driver's default
  int optimization_level = 1;
  size_t plan_cache = 16;  // shapes that are kept ready
  bool check = false;      // compare each node with the reference (also ANYMPS_CHECK)
  std::vector<std::string> without_passes;
  MappedFiles files;  // that constants of the graph lie in
};

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
           Profiler* profiler = nullptr);
  // The same without waiting. The tensors, and the executable if it is shared, are kept alive until
  // the work is done. Results are made at once when their shapes do not depend on data.
  void submit(const std::vector<Tensor>& feeds, std::vector<Tensor>& results, Queue& queue);
  // The fastest form: pointers to contiguous feeds of the shapes of `plan`.
  std::shared_ptr<Plan> plan(const std::vector<Shape>& feeds);

  // The types of the results for feeds of these shapes, without a run. Extents that depend on data
  // are not known. The shapes of feeds that are not tensors are not looked at.
  std::vector<ValueType> result_types(const std::vector<Shape>& feeds);

  // As part of another executable's run. Results may share memory with feeds.
  std::vector<Tensor> run_body(std::vector<Tensor> feeds, const RunState& state);

  // The variables that read_variable and assign_variable use; they live as long as the executable.
  Variables& variables() { return *variables_; }

  // Drops the plans, their arenas and packed weights; the next run makes them again.
  void clear_plans();
  CacheStats plan_stats() const { return plans_.stats(); }

  const Graph& graph() const { return *graph_; }
  const std::vector<PassReport>& passes() const { return passes_; }
  const CompileOptions& options() const { return options_; }
  Device& device() { return *device_; }

 private:
  void number_symbols();
  void forget_kernels(bool whole);
  std::shared_ptr<Plan> body_plan(const std::vector<Tensor>& feeds);
  bool shape_fits(size_t input, const Shape& shape, SmallVector<int64_t, 16>& extents) const;
  void check_feeds(const std::vector<Tensor>& feeds) const;
  Interpreter& interpreter();
  void run_plan(Plan& plan, const std::vector<Tensor>& feeds, std::vector<Tensor>& results,
                Queue& queue, Profiler* profiler);
  void interpret(const std::vector<Tensor>& feeds, std::vector<Tensor>& results, Queue& queue,
                 Profiler* profiler);
  void run_now(const std::vector<Tensor>& feeds, std::vector<Tensor>& results, Queue& queue,
               Profiler* profiler);
  Tensor own_result(const Value* output, Tensor tensor, Queue& queue);

  DevicePtr device_;
  CompileOptions options_;
  std::unique_ptr<Graph> graph_;
  std::vector<PassReport> passes_;
  std::vector<SmallVector<int, 6>> symbols_;  // of each dimension of each input; -1: known
  std::vector<int64_t> limits_;               // of each symbol: the largest extent
  LruCache<std::string, Plan> plans_;
  Plan::KernelCache kernels_;
  std::unordered_set<std::string> unplanned_;  // feeds for which shapes depend on data
  ForkMutex last_mutex_;                       // guards the next two
  std::shared_ptr<Plan> last_plan_;            // of run_body
  std::vector<Shape> last_shapes_;
  bool never_planned_ = false;  // the graph must be interpreted, whatever the feeds
  int depth_ = 0;
  std::once_flag interpreter_made_;
  std::unique_ptr<Interpreter> interpreter_;
  std::unique_ptr<Variables> variables_;
  // Guards kernels_ and unplanned_, even while a plan is made.
  ForkMutex plan_mutex_{ForkMutex::kLong, [this](bool whole) { forget_kernels(whole); }};
};

}  // namespace anymps
