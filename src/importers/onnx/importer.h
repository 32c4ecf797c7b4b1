// SPDX-License-Identifier: Apache-2.0
// The walk over an ONNX graph: names to values, nodes in running order, functions in place of their
// calls. What a single op means is none of its business.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "importers/onnx/registry.h"

namespace anymps::onnx {

// The names that a graph, a branch or a function body can see.
struct Scope {
  Scope* parent = nullptr;  // of a branch; a function sees only its arguments
  const std::vector<OpsetImport>* opsets = nullptr;
  std::unordered_map<std::string_view, Value*> values;  // null: an argument that is left out
  std::unordered_map<std::string_view, const Tensor*> tensors;  // made into values when used

  bool contains(std::string_view name) const;
};

class Importer {
 public:
  Importer(const Model& model, anymps::Graph& graph) : model_(model), graph_(graph) {}
  void run();

 private:
  void add_inputs(Scope& scope);
  void add_tensors(const Graph& graph, Scope& scope);
  void set_outputs(Scope& scope);

  void run_nodes(const std::vector<Node>& nodes, Scope& scope);
  void run_node(const Node& node, Scope& scope);
  Values convert(const Node& node, Scope& scope);
  Values inline_function(const Function& function, const Node& node, Values inputs);
  Values inline_branch(const Node& node, Value* condition, Scope& scope);
  void bind_outputs(const Node& node, const Values& values, Scope& scope);
  Value* lookup(Scope& scope, std::string_view name);

  void check_supported(const std::vector<Node>& nodes) const;
  const Function* find_function(const Node& node) const;
  static int64_t opset(const Scope& scope, std::string_view domain);

  const Model& model_;
  anymps::Graph& graph_;
  std::unordered_set<const Value*> named_;  // those that bear the name of an ONNX value
  size_t nodes_done_ = 0;
  int depth_ = 0;
};

// node 17 "conv1" (Conv)
std::string label(const Node& node, size_t index);

// Indices of the nodes, each after those that make its inputs; in the file's order where that is
// possible. Fails, naming a node, on a cycle, on an input that nobody makes and on a name that is
// made twice.
std::vector<size_t> running_order(const std::vector<Node>& nodes, const Scope& scope);

}  // namespace anymps::onnx
