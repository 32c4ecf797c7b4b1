// SPDX-License-Identifier: Apache-2.0
// What passes share: the walk over a graph that changes under it, and the questions that patterns
// ask about values. A question that cannot be answered for certain (an unknown extent, a value that
// is not a constant) is answered with no.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "graph/graph.h"

namespace anymps {

// Visits the nodes in running order while they are replaced. Nodes that a rewrite leaves without
// users are erased at once, so that use counts are exact; new nodes go before the visited one.
class Rewriter {
 public:
  explicit Rewriter(Graph& graph) : graph_(graph) {}

  Graph& graph() { return graph_; }

  // Calls fn(node), which returns whether it changed something; returns how often it did.
  template <typename Fn>
  int each(Fn&& fn) {
    return visit(graph_.node_list(), fn);
  }
  // The same from the last node to the first.
  template <typename Fn>
  int each_backwards(Fn&& fn) {
    std::vector<Node*> nodes = graph_.node_list();
    std::reverse(nodes.begin(), nodes.end());
    return visit(nodes, fn);
  }

  // All uses of `from` become uses of `to`. Returns false, and does nothing, when that would take
  // away the name of a graph output or turn an input into an output.
  bool replace(Value* from, Value* to);

 private:
  template <typename Fn>
  int visit(const std::vector<Node*>& nodes, Fn&& fn) {
    gone_.clear();
    int changes = 0;
    for (Node* node : nodes) {
      if (gone_.contains(node)) continue;
      graph_.insert_before(node);
      changes += fn(*node) ? 1 : 0;
    }
    graph_.insert_before(nullptr);
    if (changes) graph_.erase_dead();
    return changes;
  }
  void erase_unused(Node* node);

  Graph& graph_;
  std::unordered_set<const Node*> gone_;
};

bool can_replace(const Graph& graph, const Value* from, const Value* to);

// The node that makes a value, if it is this op (or one of these ops).
Node* made_by(const Value* value, std::string_view op);
Node* made_by(const Value* value, std::initializer_list<std::string_view> ops);

// Used by one node, once, and not a graph output: it may vanish into its user.
bool single_use(const Graph& graph, const Value* value);

int64_t rank_of(const Value* value);  // -1: unknown
bool same_shape(const Value* a, const Value* b);
bool same_shape(const Dims& a, const Dims& b);
bool is_scalar(const Value* value);  // one element

// For a commutative node: calls fn(a, b) and then fn(b, a), until one returns true.
template <typename Fn>
bool either_order(const Node& node, Fn&& fn) {
  return fn(node.inputs[0], node.inputs[1]) || fn(node.inputs[1], node.inputs[0]);
}

// `node` as  source * scale + offset  with numbers: a mul, div, add or sub with a constant.
struct Affine {
  Value* source = nullptr;
  double scale = 1, offset = 0;
};
std::optional<Affine> as_affine(const Node& node);

// Equal up to the rounding of a constant that a model stores in `dtype`.
bool near(double a, double b, DType dtype);

// In which type a model stores the numbers of a formula. Where halves were widened (PassContext::
// rounded), numbers of f32 may be those of a half type: if it has all of them.
class StoredNumbers {
 public:
  StoredNumbers(DType dtype, DTypeSet rounded)
      : dtype_(dtype), halves_(dtype == DType::kF32 ? rounded : 0) {}

  void add(double number);  // or what is divided by
  DType dtype() const;

 private:
  DType dtype_;
  DTypeSet halves_;  // that have all numbers so far
};

// The elements of a constant of at most `limit` elements as doubles.
std::optional<std::vector<double>> numbers_of(const Value* value, int64_t limit);
// A constant of the given dtype from doubles.
ConstantPtr constant_from(DType dtype, Shape shape, const std::vector<double>& numbers);

// The integers that an op takes from input i, if it is there, or else from the attribute; nothing
// if they are not all known.
std::optional<std::vector<int64_t>> known_ints(const Node& node, size_t i, const char* attr);

// The shape attribute with which reshape turns `from` into `to` (0 copies an extent, -1 is
// inferred), if there is one.
std::optional<std::vector<int64_t>> reshape_attr(const Dims& from, const Dims& to);
// A value of this shape with the same elements: `value` itself, or a reshape; null if the shape
// cannot be written as an attribute.
Value* reshaped(Graph& graph, Value* value, const Dims& shape, const std::string& name);

// The normalised permutation of a transpose node.
std::vector<int64_t> perm_of(const Node& transpose);

}  // namespace anymps
