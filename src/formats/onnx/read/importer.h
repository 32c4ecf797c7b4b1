// SPDX-License-Identifier: Apache-2.0
// The walk over an ONNX graph: names to values, nodes in running order, functions in place of their
// calls. What a single op means is not its concern.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "formats/onnx/read/import.h"
#include "formats/onnx/read/registry.h"

namespace anymps::onnx {

// A graph that is being made: that of the model, or the body of a node.
struct Target {
  explicit Target(anymps::Graph& graph) : graph(graph) {}
  anymps::Graph& graph;
  std::unordered_set<const Value*> named;  // those that bear the name of an ONNX value
};

// The names that a graph, a branch or a function body can see.
struct Scope {
  Scope* parent = nullptr;  // of a branch; a function or a body sees only what it is given
  const std::vector<OpsetImport>* opsets = nullptr;
  Target* target = nullptr;
  std::unordered_map<std::string_view, Value*> values;  // null: an argument that is left out
  // Made into values when used.
  std::unordered_map<std::string_view, const Tensor*> tensors;
  std::unordered_map<std::string_view, const SparseTensor*> sparse;

  bool contains(std::string_view name) const;
};

class Importer {
 public:
  Importer(const Model& model, anymps::Graph& graph, DefaultInputs* defaults = nullptr)
      : model_(model), main_(graph), defaults_(defaults) {}
  void run();

  // Ops that hold graphs, or look at the graph around them.
  Values convert_if(const Node& node, const Values& inputs, Scope& scope);
  Values convert_loop(const Node& node, const Values& inputs, Scope& scope);
  Values convert_scan(const Node& node, const Values& inputs, Scope& scope);
  Values convert_sequence_map(const Node& node, const Values& inputs, Scope& scope);
  Values convert_flex_attention(const Node& node, const Values& inputs, Scope& scope);
  Values convert_gradient(const Node& node, const Values& inputs, Scope& scope);

 private:
  using GraphPtr = std::shared_ptr<anymps::Graph>;
  // What a body uses from outside, by name.
  using Captures = std::vector<std::pair<std::string_view, Value*>>;

  void open_defaults(Scope& scope);
  void add_inputs(Scope& scope);
  void add_tensors(const Graph& graph, Scope& scope);
  void set_outputs(Scope& scope);

  void run_nodes(const std::vector<Node>& nodes, Scope& scope);
  void run_node(const Node& node, Scope& scope);
  Values convert(const Node& node, Scope& scope);
  Values inline_function(const Function& function, const Node& node, Values inputs, Scope& scope);
  // The nodes of a graph, whose names see those around it, with these values as its inputs.
  Values run_graph(const Graph& graph, const Values& inputs, Scope& scope);
  Values inline_branch(const Node& node, bool condition, Scope& scope);
  void bind_outputs(const Node& node, const Values& values, Scope& scope);
  Value* lookup(Scope& scope, std::string_view name);

  Values convert_scan_8(const Node& node, const Values& inputs, Scope& scope);
  // The nodes of a body in place of the node that holds it.
  Values inline_body(const Graph& body, const Values& inputs, Scope& scope);
  Captures captures_of(const std::vector<const Graph*>& bodies, Scope& scope);
  GraphPtr import_body(const Graph& source, const std::vector<ValueType>& types,
                       const Captures& captures, const Scope& outer);
  GraphPtr import_branch(const Graph& source, const Captures& captures, const Scope& outer,
                         std::string& error);
  GraphPtr import_loop_body(const Graph& source, std::vector<ValueType>& types, size_t first,
                            size_t count, size_t first_output, const Captures& captures,
                            const Scope& outer);

  void check_supported(const std::vector<Node>& nodes) const;
  const Function* find_function(const Node& node) const;
  static int64_t opset(const Scope& scope, std::string_view domain);

  const Model& model_;
  Target main_;
  DefaultInputs* defaults_;  // null: none wanted
  size_t nodes_done_ = 0, bodies_ = 0;
  int depth_ = 0;
};

// Names that a graph reads and does not define.
void free_names(const Graph& graph, std::vector<std::string_view>& names);
ConstantPtr to_constant(const SparseTensor& sparse);
// The type of a graph input; fails on what the engine has no values of.
ValueType to_type(const ValueInfo& info);

// node 17 "conv1" (Conv)
std::string label(const Node& node, size_t index);

// Indices of the nodes, each after those that make its inputs; in the file's order where that is
// possible. Fails, naming a node, on a cycle, on an input that nobody makes and on a name that is
// made twice.
std::vector<size_t> running_order(const std::vector<Node>& nodes, const Scope& scope);

}  // namespace anymps::onnx
