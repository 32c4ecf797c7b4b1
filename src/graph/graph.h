// SPDX-License-Identifier: Apache-2.0
// The graph: values, and nodes in the order in which they run. Nodes and values live as long as
// their graph; passes replace uses and erase what is dead.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "memory/constant.h"
#include "ops/infer.h"
#include "ops/op.h"

namespace anymps {

struct Node;

struct Value {
  ValueType type;
  std::string name;
  Node* producer = nullptr;  // null: an input or a constant
  int index = 0;             // which output of the producer
  ConstantPtr constant;      // set: a constant
  std::vector<Node*> users;  // one entry for each use, in no order

  // The graph's own books: so that no change has to search long lists.
  std::vector<uint32_t> user_slots;   // users[i]->inputs[user_slots[i]] is this value
  std::vector<size_t> output_places;  // where it is among the graph's outputs

  bool is_constant() const { return constant != nullptr; }
  bool is_input() const { return !producer && !constant; }
  DType dtype() const { return type.dtype; }
  const Dims& shape() const { return type.shape; }
};

struct Node {
  const Op* op = nullptr;
  Attrs attrs;
  std::vector<Value*> inputs;  // null: an optional input that is absent
  std::vector<Value*> outputs;
  std::string name;
  std::vector<size_t>
      use_places;  // inputs[i]->users[use_places[i]] is this node: the graph's books

  bool is(std::string_view op_name) const { return op->name == op_name; }
  Value* input(size_t i) const { return i < inputs.size() ? inputs[i] : nullptr; }
  Value* output() const { return outputs[0]; }
  std::string label() const;  // node "attn/softmax": for messages
};

class Graph {
 public:
  Graph() = default;
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  std::unique_ptr<Graph> clone() const;  // constants are shared

  std::string name;
  // Names of extents are what a file says: exporters give one name to different dimensions.
  bool loose_names = false;

  // Building. Shapes and dtypes are checked and inferred at once.
  Value* input(std::string name, DType dtype, Dims shape);
  Value* input(std::string name, ValueType type);
  Value* constant(ConstantPtr constant, std::string name = "");
  Value* scalar(DType dtype, double value);
  Value* ints(const std::vector<int64_t>& values);  // an i64 vector
  // `outputs` 0: all but by-products.
  Node* add_node(const Op& op, std::vector<Value*> inputs, const NamedAttrs& attrs = {},
                 std::string name = "", size_t outputs = 0);
  // The usual form: an op with one output.
  Value* add(std::string_view op, std::vector<Value*> inputs, const NamedAttrs& attrs = {},
             std::string name = "");
  void set_outputs(std::vector<Value*> outputs);

  const std::vector<Value*>& inputs() const { return inputs_; }
  const std::vector<Value*>& outputs() const { return outputs_; }
  bool is_output(const Value* value) const { return !value->output_places.empty(); }
  bool owns(const Value* value) const { return value_places_.contains(value); }

  // Nodes in running order. Nodes added while `insert_before(node)` is in force go before it.
  const std::list<std::unique_ptr<Node>>& nodes() const { return nodes_; }
  size_t node_count() const { return nodes_.size(); }
  std::vector<Node*> node_list() const;  // a copy that stays valid while the graph changes
  void insert_before(Node* node);        // null: at the end
  Value* find_value(std::string_view name) const;  // null: none
  std::vector<Value*> values() const;  // inputs, constants, node outputs that are in use

  void rename(Value* value, const std::string& name);  // made unique if it is taken

  // Rewriting.
  void replace_uses(Value* from, Value* to);  // graph outputs too; names of outputs are kept
  void set_input(Node* node, size_t index, Value* value);
  void erase(Node* node);  // its outputs must have no uses
  size_t erase_dead();     // nodes and constants that no output needs; how many nodes went
  void infer_again();      // after inputs or constants changed
  void sort();             // producers before users; fails on a cycle, naming its nodes

 private:
  Value* new_value();
  static void add_use(Node* node, size_t slot);     // of the value that is in the slot
  static void remove_use(Node* node, size_t slot);  // which stays in the slot
  std::string unique_name(const std::string& stem);
  std::string tell_apart(const std::string& node_name, const std::vector<ValueType>& types);

  std::list<std::unique_ptr<Value>> values_;
  std::list<std::unique_ptr<Node>> nodes_;
  std::unordered_map<const Node*, std::list<std::unique_ptr<Node>>::iterator> places_;
  std::unordered_map<const Value*, std::list<std::unique_ptr<Value>>::iterator> value_places_;
  std::unordered_map<std::string, size_t> stems_;
  std::unordered_map<std::string, Value*> by_name_;
  std::unordered_map<std::string, size_t> makers_;  // names of nodes that made symbols
  std::vector<Value*> inputs_, outputs_;
  Node* before_ = nullptr;
};

// The elements of a small integer constant, as inference content.
std::optional<Dims> content_of(const Constant& constant);
// The other way round: whether inference knows the elements of a value, and they as a constant.
bool knows_elements(const ValueType& type);
ConstantPtr constant_of_elements(const ValueType& type);
// A constant's only element (any real dtype) if it has one element, or all are equal.
std::optional<double> scalar_of(const Value* value);
// The elements of an integer constant.
std::vector<int64_t> ints_of(const Value& value);

// Structure, arity, dtypes, shapes, names; fails naming the node. `after` says which pass ran.
void verify(const Graph& graph, const std::string& after = "");

}  // namespace anymps
