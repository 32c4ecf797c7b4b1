// SPDX-License-Identifier: Apache-2.0
// Running a graph one node at a time, for graphs that cannot have a plan: shapes that depend on
// data, control flow, lists, strings. What was prepared for a node (its kernel, its view) is kept
// and used again while the descriptions of its inputs stay the same.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/fork.h"
#include "graph/graph.h"
#include "runtime/device.h"
#include "runtime/plan.h"
#include "runtime/preparation.h"
#include "runtime/profiler.h"

namespace anymps {

class Executable;
class Renewal;
class Variables;
struct CompileOptions;

// What one run carries along, into the bodies of its nodes too.
struct RunState {
  Queue& queue;
  Profiler* profiler = nullptr;
  StringStore* strings = nullptr;
  Variables* variables = nullptr;
  Dimensions dimensions = {};
};

class Interpreter {
 public:
  // Compiles the bodies of the graph's nodes; `depth` says how deep in bodies the graph is itself.
  Interpreter(Device& device, const Graph& graph, const CompileOptions& options, int depth);
  ~Interpreter();

  // Several threads may run at once. Results may share memory with feeds and with each other.
  std::vector<Tensor> run(std::vector<Tensor> feeds, const RunState& state);
  // The constants of the graph have been replaced: so are those of the bodies, and what was made of
  // the old ones is forgotten. While nobody runs.
  void renew(Renewal& renewal);

 private:
  using Slots = std::vector<Tensor>;
  struct Input {
    int slot = -1;                    // -1: a constant, or absent
    const Value* constant = nullptr;  // null: not a constant
    bool ends = false;                // the only reader of a value that nobody reads later
    bool absent() const { return slot < 0 && !constant; }
  };
  struct Prepared;
  using PreparedPtr = std::shared_ptr<const Prepared>;
  // One node: where its values are, and what was prepared for it, latest first.
  struct Site {
    const Node* node = nullptr;
    std::vector<Input> inputs;
    std::vector<int> outputs, dying;                            // slots
    std::map<std::string, std::shared_ptr<Executable>> bodies;  // by attribute
    ForkMutex mutex;                                            // guards recent
    std::deque<PreparedPtr> recent;
  };

  void add_bodies(Site& site, const CompileOptions& options, int depth);
  void run_structural(Site& site, Slots& slots, const RunState& state);
  void run_node(Site& site, Slots& slots, const RunState& state);
  PreparedPtr find(Site& site, const Slots& slots, const std::vector<Content>* contents,
                   const std::vector<Shape>* measured);
  PreparedPtr prepare(Site& site, const Slots& slots, const std::vector<Content>* contents,
                      const std::vector<Shape>* measured);
  PreparedPtr ready(Site& site, const Slots& slots, const std::vector<Content>* contents,
                    const std::vector<Shape>* measured);
  std::vector<Content> contents_of(const Site& site, const Slots& slots, const RunState& state);
  std::vector<Shape> measure(const Site& site, const Slots& slots, const RunState& state);
  Tensor constant_tensor(const Constant& constant);
  Tensor value_of(const Input& input, const Slots& slots);

  Device& device_;
  int threads_;
  bool check_;
  Denormals denormals_;
  size_t slot_count_ = 0;
  std::deque<Site> sites_;
  std::vector<Input> results_;
};

// A value as an optional, where the type says so.
Tensor as_container(Tensor tensor, Container container);

// The error with the node in its message: "… (node "a")", and one level up
// "… (node "loop" / node "a")".
Error with_node(const Error& error, const std::string& label);

}  // namespace anymps
